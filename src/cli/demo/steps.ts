/** The steps of the walk-through. Each answers what was seen, or throws with what was not. */

import { isoText, monotonicMs, pause, systemClock } from '../../kernel/clock.ts';
import { type Json, jsonText } from '../../kernel/json.ts';
import { systemRandom } from '../../kernel/random.ts';
import { about, call, insist, PATIENCE_MS, type Stage, same, webhook } from './stage.ts';

export async function subscribe(stage: Stage): Promise<string> {
  const { status, body } = await call(stage, 'POST', '/api/endpoints', {
    url: stage.receiver.url,
    event_types: ['*'],
  });
  insist(
    status === 201 && typeof body.secret === 'string',
    `creation answered ${status} ${jsonText(body)}`,
  );
  stage.receiver.trust(body.secret);
  return `${String(body.id)} at ${stage.receiver.url}`;
}

export async function observe(stage: Stage): Promise<string> {
  const { payer, payee } = stage.service.objects;
  const addrs = [...new Set([payer, payee])];
  const { status, body } = await call(
    stage,
    'POST',
    '/api/watches',
    addrs.map((addr) => ({ kind: 'wallet', addr })),
  );
  insist(status === 201, `watching answered ${status} ${jsonText(body)}`);
  for (const addr of addrs) {
    await webhook(
      stage,
      `wallet.observed of ${addr}`,
      (r) => r.type === 'wallet.observed' && same(r.data.addr, addr),
    );
  }
  return addrs.join(' and ');
}

export async function mint(stage: Stage): Promise<string> {
  const { contract, payer } = stage.service.objects;
  const tokenId = String(Math.floor(systemRandom.unit() * 1e9) + 1e6);
  const form = new URLSearchParams({
    toAddr: payer,
    tokenId,
    tokenURI: `https://example.com/${tokenId}.json`,
  });
  const { body, operation, outcome } = await call(
    stage,
    'POST',
    `/v1/chain/erc721/${contract}/mint`,
    form.toString(),
  );
  insist(operation && outcome === 'accepted', `the mint answered ${jsonText(body)}`);
  await about(stage, 'operation.accepted', operation);
  await webhook(
    stage,
    'token.minted',
    (r) => r.type === 'token.minted' && r.data.token_id === tokenId,
  );
  const settled = await about(stage, 'operation.settled', operation);
  return `token ${tokenId} settled under ${String(settled.data.tx_hash)}`;
}

export async function give(stage: Stage): Promise<string> {
  const { operator, payer } = stage.service.objects;
  const path = `/v1/app/token/operations/${operator}/give`;
  const { body, operation, outcome } = await call(stage, 'POST', path, {
    toAddr: payer,
    amount: 100,
    reasonType: 'demo',
  });
  insist(operation && outcome === 'accepted', `the give answered ${jsonText(body)}`);
  const accepted = await about(stage, 'operation.accepted', operation);
  await about(stage, 'operation.settled', operation);
  return `100 to ${payer}, number ${String(accepted.data.tx_log_no)}, confirmed by the balance`;
}

export async function transfer(stage: Stage, amount: number): Promise<string> {
  const { path, body } = payment(stage, amount, 1);
  const answer = await call(stage, 'POST', path, body);
  const { operation } = answer;
  insist(operation && answer.outcome === 'accepted', `it answered ${jsonText(answer.body)}`);
  const accepted = await about(stage, 'operation.accepted', operation);
  await about(stage, 'operation.settled', operation);
  return `${amount} and 1 as fee, number ${String(accepted.data.tx_log_no)}`;
}

/** A transfer between the two wallets; where only one is known, a deduction from it. */
function payment(stage: Stage, amount: number, feeAmount: number): { path: string; body: Json } {
  const { payer: fromAddr, payee: toAddr } = stage.service.objects;
  const money = { fromAddr, amount, feeAmount, reasonType: 'demo' };
  return fromAddr === toAddr
    ? { path: '/v1/app/token/operations/receive-from', body: money }
    : { path: '/v1/app/token/accounts/transfer', body: { ...money, toAddr } };
}

export async function loseAnswer(stage: Stage): Promise<string> {
  stage.service.loseNextAnswer();
  const lost = payment(stage, 13, 2);
  const { status, body, operation } = await call(stage, 'POST', lost.path, lost.body);
  insist(
    status === 504 && operation,
    `the gateway answered ${status} ${jsonText(body)} instead of 504`,
  );
  await about(stage, 'operation.unknown', operation);
  stage.memory.lost = operation;
  return `${operation} is unknown, and not sent again`;
}

export async function changeBehind(stage: Stage): Promise<string> {
  const { operator, payee } = stage.service.objects;
  const path = `/v1/app/token/operations/${operator}/give`;
  // After the lost transfer is explained, so that the evidence for the one does not blur the other.
  await endOfLost(stage);
  await stage.service.directly(path, { toAddr: payee, amount: 7, reasonType: 'elsewhere' });
  const opened = await webhook(
    stage,
    'wallet.drift_opened',
    (r) => r.type === 'wallet.drift_opened' && same(r.data.addr, payee) && r.data.amount === '7',
  );
  return `drift ${String(opened.data.drift_id)} of 7 on ${payee}`;
}

export async function endOfLost(stage: Stage): Promise<string> {
  insist(stage.memory.lost, 'there is no lost answer');
  const ended = await webhook(
    stage,
    'operation.resolved or operation.undecided',
    (r) =>
      ['operation.resolved', 'operation.undecided'].includes(r.type) &&
      r.data.operation_id === stage.memory.lost,
  );
  stage.memory.resolution = ended.type;
  return ended.type === 'operation.resolved'
    ? `resolved as ${String(ended.data.outcome)} by evidence`
    : 'the evidence does not decide; people must, and the report names it';
}

export async function report(stage: Stage, from: number): Promise<string> {
  const { payee } = stage.service.objects;
  let said = 'there is no report';
  // The last looks and postings may still be under way: a report is asked for until it has them.
  for (const until = monotonicMs() + PATIENCE_MS; monotonicMs() < until; await pause(1_000)) {
    const { id, breaks } = await makeReport(stage, from);
    const drifts = breaks.filter(({ kind }) => kind.startsWith('drift'));
    const others = breaks.filter(({ kind }) => !kind.startsWith('drift'));
    const lost = others.filter((row) => jsonText(row).includes(String(stage.memory.lost)));
    said = breaks.map(({ kind, amount }) => `${kind} ${amount ?? ''}`).join(', ') || 'balanced';
    const right =
      drifts.length === 1 && drifts[0]?.amount === '7' && jsonText(drifts).includes(payee);
    const named =
      stage.memory.resolution === 'operation.resolved'
        ? others.length === 0
        : lost.length === others.length;
    if (right && named) return `${id} has ${breaks.length} break: ${said}, on ${payee}`;
  }
  throw new Error(`the report says: ${said}`);
}

type Break = { kind: string; amount: string | null };

async function makeReport(stage: Stage, from: number): Promise<{ id: string; breaks: Break[] }> {
  const period = { from: isoText(from - 1_000), to: isoText(systemClock.now() + 1_000) };
  const made = await call(stage, 'POST', '/api/reports', { kind: 'reconciliation', ...period });
  insist(made.status === 201, `the report answered ${made.status} ${jsonText(made.body)}`);
  const whole = await call(stage, 'GET', `/api/reports/${String(made.body.id)}`);
  const content = whole.body.content as { breaks?: { listed?: Break[] } } | undefined;
  return { id: String(made.body.id), breaks: content?.breaks?.listed ?? [] };
}

export async function genuine({ receiver }: Stage): Promise<string> {
  const { verified, refused, repeated } = receiver.counts();
  insist(verified > 0 && refused === 0, `${verified} verified, ${refused} refused`);
  return `${verified} verified by standardwebhooks, ${repeated} repeated, 0 refused`;
}
