/** The steps of the demo. Each returns a description of its result, or throws the reason. */

import { isoText, monotonicMs, pause, systemClock } from '../../kernel/clock.ts';
import { type Json, jsonText } from '../../kernel/json.ts';
import { systemRandom } from '../../kernel/random.ts';
import { about, call, expect, sameAddress, TIMEOUT_MS, type Walk, webhook } from './walk.ts';

export async function subscribe(walk: Walk): Promise<string> {
  const { status, body } = await call(walk, 'POST', '/api/endpoints', {
    url: walk.receiver.url,
    event_types: ['*'],
  });
  expect(
    status === 201 && typeof body.secret === 'string',
    `creation answered ${status} ${jsonText(body)}`,
  );
  walk.receiver.trust(body.secret);
  return `${String(body.id)} at ${walk.receiver.url}`;
}

export async function observe(walk: Walk): Promise<string> {
  const { payer, payee } = walk.service.targets;
  const addrs = [...new Set([payer, payee])];
  const { status, body } = await call(
    walk,
    'POST',
    '/api/watches',
    addrs.map((addr) => ({ kind: 'wallet', addr })),
  );
  expect(status === 201, `watching answered ${status} ${jsonText(body)}`);
  for (const addr of addrs) {
    await webhook(
      walk,
      `wallet.observed of ${addr}`,
      (r) => r.type === 'wallet.observed' && sameAddress(r.data.addr, addr),
    );
  }
  return addrs.join(' and ');
}

export async function mint(walk: Walk): Promise<string> {
  const { contract, payer } = walk.service.targets;
  const tokenId = String(Math.floor(systemRandom.unit() * 1e9) + 1e6);
  const form = new URLSearchParams({
    toAddr: payer,
    tokenId,
    tokenURI: `https://example.com/${tokenId}.json`,
  });
  const { body, operation, outcome } = await call(
    walk,
    'POST',
    `/v1/chain/erc721/${contract}/mint`,
    form.toString(),
  );
  expect(operation && outcome === 'accepted', `the mint answered ${jsonText(body)}`);
  await about(walk, 'operation.accepted', operation);
  await webhook(
    walk,
    'token.minted',
    (r) => r.type === 'token.minted' && r.data.token_id === tokenId,
  );
  const settled = await about(walk, 'operation.settled', operation);
  return `token ${tokenId} settled under ${String(settled.data.tx_hash)}`;
}

export async function give(walk: Walk): Promise<string> {
  const { operator, payer } = walk.service.targets;
  const path = `/v1/app/token/operations/${operator}/give`;
  const { body, operation, outcome } = await call(walk, 'POST', path, {
    toAddr: payer,
    amount: 100,
    reasonType: 'demo',
  });
  expect(operation && outcome === 'accepted', `the give answered ${jsonText(body)}`);
  const accepted = await about(walk, 'operation.accepted', operation);
  await about(walk, 'operation.settled', operation);
  return `100 to ${payer}, number ${String(accepted.data.tx_log_no)}, confirmed by the balance`;
}

export async function transfer(walk: Walk, amount: number): Promise<string> {
  const { path, body } = payment(walk, amount, 1);
  const answer = await call(walk, 'POST', path, body);
  const { operation } = answer;
  expect(operation && answer.outcome === 'accepted', `it answered ${jsonText(answer.body)}`);
  const accepted = await about(walk, 'operation.accepted', operation);
  await about(walk, 'operation.settled', operation);
  return `${amount} and 1 as fee, number ${String(accepted.data.tx_log_no)}`;
}

/** A transfer between the two wallets, or a deduction if there is only one. */
function payment(walk: Walk, amount: number, feeAmount: number): { path: string; body: Json } {
  const { payer: fromAddr, payee: toAddr } = walk.service.targets;
  const money = { fromAddr, amount, feeAmount, reasonType: 'demo' };
  return fromAddr === toAddr
    ? { path: '/v1/app/token/operations/receive-from', body: money }
    : { path: '/v1/app/token/accounts/transfer', body: { ...money, toAddr } };
}

export async function loseAnswer(walk: Walk): Promise<string> {
  walk.service.loseNextAnswer();
  const lost = payment(walk, 13, 2);
  const { status, body, operation } = await call(walk, 'POST', lost.path, lost.body);
  expect(
    status === 504 && operation,
    `the gateway answered ${status} ${jsonText(body)} instead of 504`,
  );
  await about(walk, 'operation.unknown', operation);
  walk.memory.lost = operation;
  return `${operation} is unknown and is not sent again`;
}

export async function changeOutside(walk: Walk): Promise<string> {
  const { operator, payee } = walk.service.targets;
  const path = `/v1/app/token/operations/${operator}/give`;
  // First the unknown transfer is resolved, so that the two differences are not mixed.
  await resolveLost(walk);
  await walk.service.sendDirectly(path, { toAddr: payee, amount: 7, reasonType: 'outside' });
  const opened = await webhook(
    walk,
    'wallet.drift_opened',
    (r) =>
      r.type === 'wallet.drift_opened' && sameAddress(r.data.addr, payee) && r.data.amount === '7',
  );
  return `drift ${String(opened.data.drift_id)} of 7 on ${payee}`;
}

export async function resolveLost(walk: Walk): Promise<string> {
  expect(walk.memory.lost, 'there is no lost answer');
  const ended = await webhook(
    walk,
    'operation.resolved or operation.undecided',
    (r) =>
      ['operation.resolved', 'operation.undecided'].includes(r.type) &&
      r.data.operation_id === walk.memory.lost,
  );
  walk.memory.resolution = ended.type;
  return ended.type === 'operation.resolved'
    ? `resolved as ${String(ended.data.outcome)} by evidence`
    : 'undecided by evidence; the report lists it for people';
}

export async function report(walk: Walk, from: number): Promise<string> {
  const { payee } = walk.service.targets;
  let result = 'there is no report';
  // The last polls and postings may still be running, so the report is repeated.
  for (const until = monotonicMs() + TIMEOUT_MS; monotonicMs() < until; await pause(1_000)) {
    const { id, breaks } = await makeReport(walk, from);
    const drifts = breaks.filter(({ kind }) => kind.startsWith('drift'));
    const others = breaks.filter(({ kind }) => !kind.startsWith('drift'));
    const lost = others.filter((row) => jsonText(row).includes(String(walk.memory.lost)));
    result = breaks.map(({ kind, amount }) => `${kind} ${amount ?? ''}`).join(', ') || 'balanced';
    const hasDrift =
      drifts.length === 1 && drifts[0]?.amount === '7' && jsonText(drifts).includes(payee);
    const hasUnknown =
      walk.memory.resolution === 'operation.resolved'
        ? others.length === 0
        : lost.length === others.length;
    if (hasDrift && hasUnknown) return `${id} has ${breaks.length} break: ${result}, on ${payee}`;
  }
  throw new Error(`the report has: ${result}`);
}

type Break = { kind: string; amount: string | null };

async function makeReport(walk: Walk, from: number): Promise<{ id: string; breaks: Break[] }> {
  const period = { from: isoText(from - 1_000), to: isoText(systemClock.now() + 1_000) };
  const made = await call(walk, 'POST', '/api/reports', { kind: 'reconciliation', ...period });
  expect(made.status === 201, `the report answered ${made.status} ${jsonText(made.body)}`);
  const whole = await call(walk, 'GET', `/api/reports/${String(made.body.id)}`);
  const content = whole.body.content as { breaks?: { listed?: Break[] } } | undefined;
  return { id: String(made.body.id), breaks: content?.breaks?.listed ?? [] };
}

export async function verifyWebhooks({ receiver }: Walk): Promise<string> {
  const { verified, refused, repeated } = receiver.counts();
  expect(verified > 0 && refused === 0, `${verified} verified, ${refused} refused`);
  return `${verified} verified by standardwebhooks, ${repeated} repeated, 0 refused`;
}
