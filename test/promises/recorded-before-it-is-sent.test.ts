/**
 * Promise 1. A write is durable before it is sent, and its number or hash before the caller sees
 * it.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeApp } from '../harness/app.ts';
import { type DaemonProcess, startDaemon } from '../harness/daemon.ts';
import { useWorld } from '../harness/rig.ts';
import { startTripwire, type Tripwire } from '../harness/tripwire.ts';

const world = await useWorld();
let wire: Tripwire;
let daemon: DaemonProcess;

beforeAll(async () => {
  wire = await startTripwire(world.sandbox.port);
  const url = `http://127.0.0.1:${wire.port}`;
  daemon = await startDaemon({ ...world, sandbox: { ...world.sandbox, url } });
});
afterAll(async () => {
  await daemon?.stop();
  await wire?.close();
});

const rowOf = (reference: string) =>
  world.database.owner.sql<
    { state: string; txLogNo: bigint | null; txHash: string | null }[]
  >`select state, tx_log_no, tx_hash from tallyhook.operations where reference = ${reference}`;

const write = (kind: string, reference: string) => {
  const app = makeApp(() => daemon.url);
  const headers = { 'tallyhook-reference': reference };
  return kind === 'give'
    ? app.give(world.ada, 100, headers)
    : app.mint(world.ada, reference.length, headers);
};

it.each(['give', 'mint'])(
  'A %s is recorded before its first byte reaches the service',
  async (kind) => {
    const reference = `${kind} whose bytes are stopped`;
    const stopped = new Promise<void>((resolve) => {
      const fits = (text: string) => /^POST \/v1\/(?:app\/token|chain)/.test(text);
      wire.arm({ direction: 'to', n: 1, fits, withhold: true, trip: resolve });
    });
    const answer = write(kind, reference);
    await stopped;
    expect(await rowOf(reference)).toMatchObject([{ state: 'sending' }]);
    expect((await answer).json.code).toBe('outcome_unknown');
    wire.disarm();
  },
);

it.each(['give', 'mint'])('The result of a %s is recorded before the app gets it', async (kind) => {
  const answer = await write(kind, `answered ${kind}`);
  expect(answer.status, answer.text).toBe(200);
  const [row] = await rowOf(`answered ${kind}`);
  const { tx_log_no: number, tx_hash: hash } = answer.json.data;
  expect(String(row?.txLogNo ?? row?.txHash)).toBe(String(number ?? hash));
});
