/** The stored world: a killed process, a cut log, damaged data, a full disk. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { must } from '../../../src/kernel/errors.ts';
import { canonicalJson } from '../../../src/kernel/json.ts';
import { noStore, openStore } from '../../../src/sandbox/state/tables.ts';
import { BASIC, type Caller, startCaller, stopAll } from '../client.ts';

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sandbox-'));
});
afterEach(async () => {
  await stopAll();
  rmSync(directory, { recursive: true, force: true });
});
/** The state without time and requests, as text. */
function worldText({ sandbox }: Caller): string {
  const { now, counts, ...state } = sandbox.control.state();
  return canonicalJson({ ...state, effects: sandbox.control.effects() });
}

async function writeSome(caller: Caller): Promise<string> {
  const as = await caller.clientToken();
  const form = { toAddr: caller.addressOf(1), tokenURI: '5n', extraData: '"\u2028"' };
  await caller.send('POST', '/v1/chain/erc721/1/mint-sequential', { as, form });
  const json = { toAddr: caller.addressOf(1), amount: 5, reasonType: 'x' };
  await caller.send('POST', '/v1/app/token/operations/1/give', { as, json });
  return as;
}

describe('A reopened world', () => {
  it('continues with its tokens, balances, numbers, chain writes and access tokens', async () => {
    const first = await startCaller({ directory });
    const as = await writeSome(first);
    first.sandbox.control.setWallet(first.addressOf(2), { amt_token: 10n ** 60n });
    first.sandbox.control.addFault({ kind: 'delay', endpoint: 'burn' });
    const before = worldText(first);
    await first.sandbox.close();

    const second = await startCaller({ directory });
    expect(worldText(second)).toBe(before);
    second.clock.advance(10_000);
    const token = await second.send('GET', '/v1/chain/erc721/1/tokens/1', { as });
    expect(token.at('data.status')).toBe(1);
    const json = { toAddr: second.addressOf(1), amount: 5, reasonType: 'x' };
    const give = await second.send('POST', '/v1/app/token/operations/1/give', { as, json });
    expect(give.at('data.tx_log_no')).toBe(2);
  });

  it('is one of the commits, wherever its log was cut', async () => {
    await (await startCaller({ directory })).sandbox.close();
    const first = await startCaller({ directory });
    const texts = [worldText(first)];
    for (let n = 0; n < 5; n++) {
      await writeSome(first);
      texts.push(worldText(first));
    }
    // As a kill leaves it, and not as a close does.
    const killed = mkdtempSync(join(tmpdir(), 'sandbox-'));
    const copy = () => cpSync(directory, killed, { recursive: true, force: true });
    copy();
    const { length } = readFileSync(join(killed, 'world.db-wal'));
    const opened = new Set<number>();
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: length }), async (kept) => {
        rmSync(killed, { recursive: true });
        copy();
        truncateSync(join(killed, 'world.db-wal'), kept);
        const again = await startCaller({ directory: killed });
        expect(again.sandbox.control.state().members).toHaveLength(8);
        opened.add(texts.indexOf(worldText(again)));
        await again.sandbox.close();
      }),
      { numRuns: 25, examples: [[0], [length]] },
    );
    expect(opened.has(0) && opened.has(5)).toBe(true);
    rmSync(killed, { recursive: true });
  });

  it('is refused when the file is damaged or a row has an unknown shape', async () => {
    const store = openStore(directory);
    store.write([['wallets', '0x1', '{"balance":"much"}']]);
    store.close();
    await expect(startCaller({ directory })).rejects.toMatchObject({ code: 'bad_setting' });
    const damaged = join(directory, 'damaged');
    mkdirSync(damaged);
    writeFileSync(join(damaged, 'world.db'), '[["wal\n[]\n'.repeat(100));
    await expect(startCaller({ directory: damaged })).rejects.toMatchObject({
      code: 'bad_setting',
      message: expect.stringContaining('delete its folder'),
    });
  });

  it('is refused when an earlier version stored it, and stays as it is', async () => {
    const file = join(directory, 'world.jsonl');
    writeFileSync(file, '[["counters","effect",{"value":"7"}]]\n');
    await expect(startCaller({ directory })).rejects.toMatchObject({
      code: 'bad_setting',
      message: expect.stringContaining(`${file} is sandbox data of an earlier version`),
    });
    expect(readdirSync(directory)).toEqual(['world.jsonl']);
  });

  it('is readable for its owner alone, in a folder that is readable for all', async () => {
    chmodSync(directory, 0o755);
    await writeSome(await startCaller({ directory }));
    const modes = readdirSync(directory).map((name) => [
      name,
      statSync(join(directory, name)).mode & 0o777,
    ]);
    expect(modes).toEqual([
      ['world.db', 0o600],
      ['world.db-wal', 0o600],
    ]);
  });
});

it('A store has its rows in the order of their first writes, and writes all rows or none', () => {
  const store = openStore(directory);
  store.write([
    ['b', '1', 'one'],
    ['a', '2', 'two'],
    ['a', '3', 'three'],
  ]);
  store.write([
    ['b', '1', 'changed'],
    ['a', '2', null],
  ]);
  const rows = [
    ['b', '1', 'changed'],
    ['a', '3', 'three'],
  ];
  expect(store.rows()).toEqual(rows);
  const broken = ['a', '4', {} as string] as const;
  expect(() => store.write([['a', '3', null], [...broken]])).toThrow();
  expect(store.rows()).toEqual(rows);
  store.close();
  const again = openStore(directory);
  expect(again.rows()).toEqual(rows);
  again.close();
  expect(noStore.rows()).toEqual([]);
});

it('A sandbox killed at any instant has lost no acknowledged write', async () => {
  const acknowledged: number[] = [];
  for (const after of [1, 12, 40]) {
    const { child, url } = await spawned(directory);
    const address = await memberAddress(url);
    const as = await clientToken(url);
    const headers = { authorization: `Bearer ${as}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ toAddr: address, amount: 1, reasonType: 'x' });
    const give = async () => {
      const path = `${url}/v1/app/token/operations/1/give`;
      const response = await fetch(path, { method: 'POST', headers, body });
      acknowledged.push(JSON.parse(await response.text()).data.tx_log_no);
      if (acknowledged.length >= after) child.kill('SIGKILL');
    };
    // Four clients keep writes in flight during the kill.
    const clients = Array.from({ length: 4 }, async () => {
      for (;;) await give();
    });
    await Promise.allSettled(clients);
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }

  const { sandbox } = await startCaller({ directory });
  const effects = sandbox.control.effects();
  const numbers = effects.map(({ tx_log_no }) => Number(tx_log_no));
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(acknowledged.filter((number) => !numbers.includes(number))).toEqual([]);
  const ada = must(sandbox.control.state().members[0]?.addr, 'address');
  expect(sandbox.control.setWallet(ada, {}).balance).toBe(1_000n + BigInt(effects.length));
});

it('On a full disk writes fail with an error, and what was answered stays', async () => {
  const script = fileURLToPath(new URL('sandbox-process.ts', import.meta.url));
  // A limit on the file size, in KiB, simulates a full disk.
  const command = `ulimit -f 256; exec "$0" "$1" "$2"`;
  const args = ['-c', command, process.execPath, script, directory];
  const { child, url } = await ready(spawn('bash', args, { stdio: ['ignore', 'pipe', 'ignore'] }));
  const requestToken = async () => {
    const body = new URLSearchParams({ grant_type: 'client_credentials' });
    const init = { method: 'POST', headers: { authorization: BASIC }, body };
    const response = await fetch(`${url}/v1/oauth/token`, init);
    return { status: response.status, token: JSON.parse(await response.text()).access_token };
  };
  const acknowledged: string[] = [];
  let last = await requestToken();
  for (; last.status === 200; last = await requestToken()) acknowledged.push(last.token);
  expect(last.status).toBe(500);
  expect((await requestToken()).status).toBe(500);
  child.kill('SIGKILL');
  await once(child, 'exit');

  const caller = await startCaller({ directory });
  const check = (token: string) =>
    caller.send('GET', `/v1/oauth/check_token?token=${token}`, { authorization: BASIC });
  for (const token of acknowledged) expect((await check(token)).at('active')).toBe(true);
});

async function spawned(where: string): Promise<{ child: ChildProcess; url: string }> {
  const script = fileURLToPath(new URL('sandbox-process.ts', import.meta.url));
  return ready(spawn(process.execPath, [script, where], { stdio: ['ignore', 'pipe', 'inherit'] }));
}

async function ready(child: ChildProcess): Promise<{ child: ChildProcess; url: string }> {
  const [line] = await once(must(child.stdout, 'stdout'), 'data');
  return { child, url: String(line).trim() };
}

async function memberAddress(url: string): Promise<string> {
  const state = await (await fetch(`${url}/_sandbox/state`)).text();
  return JSON.parse(state).members[0].addr;
}

async function clientToken(url: string): Promise<string> {
  const body = new URLSearchParams({ grant_type: 'client_credentials' });
  const init = { method: 'POST', headers: { authorization: BASIC }, body };
  return JSON.parse(await (await fetch(`${url}/v1/oauth/token`, init)).text()).access_token;
}
