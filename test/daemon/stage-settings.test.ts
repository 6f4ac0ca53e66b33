/** From the names of the file to what each stage is given. */
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/daemon/config/config.ts';
import {
  booksOf,
  gatewaySettings,
  nudgesOf,
  observerSettings,
  reconcilerSettings,
  reportSettings,
  upstreamSettings,
  webhookSettings,
} from '../../src/daemon/config/stage-settings.ts';

const ADDR = '0x'.padEnd(42, 'a');
const config = (overrides: object = {}) => loadConfig({}, overrides);

describe('What a stage is given', () => {
  test('Is what the file says, under its own names', () => {
    const given = config({
      http: { body_bytes_max: 2_000, concurrency_max: 3 },
      upstream: { read_timeout_ms: 4, write_timeout_ms: 5, forwards_max: 6, steady_share: 0.5 },
      observer: { steady_ms: 7, probe_ms: 8, poll_timeout_ms: 9 },
      reconciler: { read_lag_ms: 0, quiescence_ms: 11, undecided_after_ms: 12 },
    });
    expect(gatewaySettings(given)).toEqual({
      bodyBytesMax: 2_000,
      concurrencyMax: 3,
      readTimeoutMs: 4,
      writeTimeoutMs: 5,
      openPathsPerS: 50,
      queueTtlMs: 86_400_000,
    });
    expect(upstreamSettings(given)).toMatchObject({
      readTimeoutMs: 4,
      writeTimeoutMs: 5,
      forwardsMax: 6,
      steadyShare: 0.5,
    });
    expect(observerSettings(given)).toMatchObject({
      steadyMs: 7,
      probeMs: 8,
      pollTimeoutMs: 9,
      steadyShare: 0.5,
    });
    expect(reconcilerSettings(given)).toMatchObject({
      steadyMs: 7,
      readLagMs: 0,
      quiescenceMs: 11,
      undecidedAfterMs: 12,
    });
  });

  test('Never begins looking faster than the budget', () => {
    const at = (budget_per_s: number, start_rate_per_s: number) =>
      upstreamSettings(config({ upstream: { budget_per_s, start_rate_per_s } })).startRatePerS;
    expect([at(2, 5), at(5, 5), at(50, 5)]).toEqual([2, 5, 5]);
  });

  test('Of books has operators by number, and nothing for an address that is not known', () => {
    expect(booksOf(config())).toEqual({
      feeMode: 'on_top',
      operators: new Map(),
      feesAddr: undefined,
      collectionAddr: undefined,
    });
    const ledger = { fee_mode: 'deducted', operators: { 1: ADDR }, fees_addr: ADDR };
    expect(booksOf(config({ ledger }))).toMatchObject({
      feeMode: 'deducted',
      operators: new Map([['1', ADDR]]),
      feesAddr: ADDR,
    });
  });

  test('Of webhooks lets loopback in only beside the sandbox', () => {
    const given = config({ webhooks: { allow_cidrs: ['10.0.0.0/8'] } });
    expect(webhookSettings(given, false).allowCidrs).toEqual(['10.0.0.0/8']);
    expect(webhookSettings(given, true).allowCidrs).toEqual([
      '10.0.0.0/8',
      '127.0.0.0/8',
      '::1/128',
    ]);
  });

  test('Of reports is days in a zone, or minutes', () => {
    const schedule = (reconciliation: object) =>
      reportSettings(config({ reports: { reconciliation } })).schedule;
    expect(schedule({})).toEqual({ every: 'day', timeZone: 'UTC' });
    expect(schedule({ time_zone: 'Europe/Berlin' })).toEqual({
      every: 'day',
      timeZone: 'Europe/Berlin',
    });
    expect(schedule({ period: 15 })).toEqual({ everyMs: 900_000 });
  });

  test('Of the calendar are the nudges of reports and of house-keeping', () => {
    expect(nudgesOf(config()).map(({ name, cron, timeZone }) => [name, cron, timeZone])).toEqual([
      ['reports', '5 0 * * *', 'UTC'],
      ['house-keeping', '17 3 * * *', 'UTC'],
    ]);
  });
});
