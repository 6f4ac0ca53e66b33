/** The mapping from the configuration to the settings of each stage. */
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/daemon/config/config.ts';
import {
  alertSettings,
  cronJobs,
  gatewaySettings,
  ledgerSettings,
  observerSettings,
  reconcilerSettings,
  reportSettings,
  webhookSettings,
} from '../../src/daemon/config/stage-settings.ts';
import { upstreamSettings } from '../../src/daemon/service.ts';

const ADDR = '0x'.padEnd(42, 'a');
const config = (overrides: object = {}) => loadConfig({}, overrides);

describe('The settings of a stage', () => {
  it('Rules for alerts name operators, whose wallets are settings', () => {
    const rules = [
      { name: 'low', kind: 'wallet_below', wallet: 'operator:1', amount: '90071992547409930001' },
      { name: 'old', kind: 'unknown_older', age_ms: 7 },
      { name: 'large', kind: 'drift_above', amount: 8 },
    ];
    const settings = config({ ledger: { operators: { 1: ADDR } }, alerts: { rules } });
    expect(alertSettings(settings).rules).toEqual([
      { name: 'low', kind: 'wallet_below', addr: ADDR, amount: 90071992547409930001n },
      { name: 'old', kind: 'unknown_older', ageMs: 7 },
      { name: 'large', kind: 'drift_above', amount: 8n },
    ]);
  });

  it.each([
    [
      { HTTPS_PROXY: 'http://a', http_proxy: 'http://b' },
      { https: 'http://a', http: 'http://b' },
    ],
    [
      { ALL_PROXY: 'http://c', HTTP_PROXY: 'http://b' },
      { https: 'http://c', http: 'http://b' },
    ],
    [{ https_proxy: 'http://a', HTTPS_PROXY: 'http://z' }, { https: 'http://a' }],
    [
      { UPSTREAM_PROXY: 'http://d', NO_PROXY: 'e' },
      { https: 'http://d', http: 'http://d', except: 'e' },
    ],
    [{ UPSTREAM_PROXY: 'none', HTTPS_PROXY: 'http://a' }, {}],
  ])('The service is reached through the forward proxy of %j', (env, proxies) => {
    expect(upstreamSettings(loadConfig(env)).proxies).toEqual(proxies);
  });

  it('come from the configuration', () => {
    const settings = config({
      http: { body_bytes_max: 2_000 },
      gateway: { concurrency_max: 3 },
      upstream: {
        read_timeout_ms: 4,
        write_timeout_ms: 5,
        app_concurrency_max: 6,
        steady_share: 0.5,
      },
      observer: {
        steady_interval_ms: 7,
        min_gap_ms: 3,
        probe_interval_ms: 8,
        poll_timeout_ms: 9,
        settled_interval_ms: 10,
      },
      reconciler: { read_lag_ms: 0, quiescence_ms: 11, undecided_after_ms: 12 },
    });
    expect(gatewaySettings(settings)).toEqual({
      bodyBytesMax: 2_000,
      concurrencyMax: 3,
      readTimeoutMs: 4,
      writeTimeoutMs: 5,
      openPathsPerS: 50,
      queueTtlMs: 86_400_000,
    });
    expect(upstreamSettings(settings)).toMatchObject({
      readTimeoutMs: 4,
      writeTimeoutMs: 5,
      forwardsMax: 6,
      steadyShare: 0.5,
    });
    expect(observerSettings(settings)).toMatchObject({
      steadyMs: 7,
      minGapMs: 3,
      settledMs: 10,
      probeMs: 8,
      pollTimeoutMs: 9,
      steadyShare: 0.5,
    });
    expect(reconcilerSettings(settings)).toMatchObject({
      steadyMs: 7,
      readLagMs: 0,
      quiescenceMs: 11,
      undecidedAfterMs: 12,
    });
  });

  it('limit the initial poll rate to the budget', () => {
    const at = (budget_per_s: number | 'auto', initial_rate_per_s: number) =>
      upstreamSettings(config({ upstream: { budget_per_s, initial_rate_per_s } })).initialRatePerS;
    expect([at(2, 5), at(5, 5), at(50, 5), at('auto', 5)]).toEqual([2, 5, 5, 5]);
  });

  it('of the ledger have operators by number and undefined for unknown addresses', () => {
    expect(ledgerSettings(config())).toEqual({
      feeMode: 'on_top',
      operators: new Map(),
      feesAddr: undefined,
      collectionAddr: undefined,
    });
    const ledger = { fee_mode: 'deducted', operators: { 1: ADDR }, fees_addr: ADDR };
    expect(ledgerSettings(config({ ledger }))).toMatchObject({
      feeMode: 'deducted',
      operators: new Map([['1', ADDR]]),
      feesAddr: ADDR,
    });
  });

  it('of the ledger have the fee rules with the instants from which they are in force', () => {
    const fee_mode = [{ mode: 'on_top' }, { from: '2026-03-01T01:00:00+01:00', mode: 'deducted' }];
    expect(ledgerSettings(config({ ledger: { fee_mode } }))).toMatchObject({
      feeMode: 'on_top',
      feeChanges: [{ from: Date.UTC(2026, 2, 1), mode: 'deducted' }],
    });
  });

  it('of webhooks allow loopback addresses only with the sandbox', () => {
    const settings = config({ webhooks: { allow_cidrs: ['10.0.0.0/8'] } });
    expect(webhookSettings(settings, false).allowCidrs).toEqual(['10.0.0.0/8']);
    expect(webhookSettings(settings, true).allowCidrs).toEqual([
      '10.0.0.0/8',
      '127.0.0.0/8',
      '::1/128',
    ]);
  });

  it('of webhooks refuse http when it is not allowed, also with the sandbox', () => {
    const settings = config({ webhooks: { allow_http: false } });
    expect(webhookSettings(settings, true).allowHttp).toBe(false);
    expect(webhookSettings(config(), false).allowHttp).toBe(true);
  });

  it('of reports have the address of the console without a slash at its end', () => {
    const reports = (console_url: string) => reportSettings(config({ reports: { console_url } }));
    expect(reports('https://t.example.com/x/').consoleUrl).toBe('https://t.example.com/x');
    expect(reports('https://t.example.com').consoleUrl).toBe('https://t.example.com');
  });

  it('of reports have the organisation, when one is set', () => {
    const organisation = 'Example Games Ltd';
    expect(reportSettings(config({ reports: { organisation } })).organisation).toBe(organisation);
    expect(reportSettings(config()).organisation).toBeUndefined();
  });

  it('of reports have days in a time zone, or minutes', () => {
    const schedule = (reconciliation: object) =>
      reportSettings(config({ reports: { reconciliation } })).schedule;
    expect(schedule({})).toEqual({ every: 'day', timeZone: 'UTC' });
    expect(schedule({ time_zone: 'Europe/Berlin' })).toEqual({
      every: 'day',
      timeZone: 'Europe/Berlin',
    });
    expect(schedule({ period: 15 })).toEqual({ everyMs: 900_000 });
  });

  it('of a bucket for reports need its address, its keys, and no folder', () => {
    const keys = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'hush' };
    const bucket = { name: 'finance', endpoint: 'http://10.0.0.5:9000', prefix: 'a/b' };
    const load = (env: object, delivery: object) =>
      loadConfig({ ...env }, { reports: { delivery } });
    expect(reportSettings(load(keys, { bucket })).files?.bucket).toEqual({
      ...bucket,
      region: 'us-east-1',
      pathStyle: true,
      keys: { accessKeyId: 'id', secretAccessKey: 'hush', sessionToken: undefined },
    });
    expect(reportSettings(load(keys, {})).files?.bucket).toBeUndefined();
    const refused: [object, object, string][] = [
      [{}, { bucket }, 'AWS_ACCESS_KEY_ID must be set'],
      [{ AWS_ACCESS_KEY_ID: 'id' }, { bucket }, 'AWS_SECRET_ACCESS_KEY must be set'],
      [keys, { bucket: { name: 'finance' } }, 'bucket.endpoint must be a URL'],
      [keys, { bucket, folder: '/srv' }, 'delivery.folder must be null'],
      [keys, { bucket: { ...bucket, endpoint: 'ftp://x' } }, 'bucket.endpoint is invalid'],
      [keys, { bucket: { ...bucket, prefix: '../x' } }, 'bucket.prefix is invalid'],
    ];
    for (const [env, delivery, text] of refused) expect(() => load(env, delivery)).toThrow(text);
  });

  it('of cron wake the reports and the partitions worker', () => {
    expect(cronJobs(config()).map(({ name, cron, timeZone }) => [name, cron, timeZone])).toEqual([
      ['reports', '5 0 * * *', 'UTC'],
      ['housekeeping', '17 3 * * *', 'UTC'],
    ]);
  });
});
