/** Maps the configuration to the settings of each stage. Pure. */
import { resolve } from 'node:path';
import type { SignInSettings } from '../../console/console.ts';
import { sameAddress } from '../../kernel/addresses.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../kernel/clock.ts';
import type { ProxySettings } from '../../kernel/http/forward-proxy.ts';
import type { ObserverSettings } from '../../observer/observer.ts';
import {
  type EffectSettings,
  type OperationsSettings,
  ownWalletsOf,
} from '../../operations/operations.ts';
import type { AlertRule, AlertSettings, ReconcilerSettings } from '../../reconciler/reconciler.ts';
import { DEFAULT_LIMITS, type ReportSettings } from '../../reports/reports.ts';
import { type WebhookSettings, webhookDefaults } from '../../webhooks/webhooks.ts';
import type { CronJob } from '../workers/cron.ts';
import type { Config } from './config.ts';

export function ledgerSettings({ ledger }: Config) {
  const modes = ledger.fee_mode;
  const [first, ...changes] = typeof modes === 'string' ? [{ mode: modes }] : modes;
  const feeChanges = changes.map(({ from, mode }) => ({ from: Date.parse(from), mode }));
  const settings: EffectSettings & { operators: Map<string, string> } = {
    feeMode: first.mode,
    ...(feeChanges.length > 0 ? { feeChanges } : {}),
    operators: new Map(Object.entries(ledger.operators)),
    feesAddr: ledger.fees_addr ?? undefined,
    collectionAddr: ledger.collection_addr ?? undefined,
  };
  return settings;
}

export function operationsSettings(
  { operations, upstream }: Config,
  ledger: EffectSettings,
): OperationsSettings {
  return {
    conflictWaitMs: operations.conflict_wait_ms,
    refuseConflicts: operations.refuse_conflicts,
    waitingMax: operations.wait_queue_max,
    queueMax: operations.request_queue_max,
    queuedSendWithinMs: upstream.write_timeout_ms,
    effects: ledger,
  };
}

/** For everything that two owners decide. */
export function decisionSettings({ decisions }: Config) {
  const { second_approver_above: above } = decisions;
  return { secondApproverAbove: above === null ? undefined : BigInt(above) };
}

function pollIntervals({ observer }: Config) {
  return {
    steadyMs: observer.steady_interval_ms,
    pendingMinMs: observer.pending_interval_min_ms,
    pendingMaxMs: observer.pending_interval_max_ms,
  };
}

export function observerSettings(config: Config): ObserverSettings {
  const { observer, upstream, reconciler } = config;
  return {
    ...pollIntervals(config),
    minGapMs: observer.min_gap_ms,
    settledMs: observer.settled_interval_ms,
    readLagMs: reconciler.read_lag_ms,
    steadyShare: upstream.steady_share,
    probeMs: observer.probe_interval_ms,
    probeDownMs: observer.probe_interval_down_ms,
    pollTimeoutMs: observer.poll_timeout_ms,
  };
}

export function reconcilerSettings(config: Config): ReconcilerSettings {
  const { reconciler } = config;
  return {
    ...pollIntervals(config),
    readLagMs: reconciler.read_lag_ms,
    quiescenceMs: reconciler.quiescence_ms,
    undecidedAfterMs: reconciler.undecided_after_ms,
    bracketMaxMs: reconciler.bracket_max_ms,
    oneSided: reconciler.one_sided,
  };
}

export function alertSettings({ alerts, ledger }: Config): AlertSettings {
  const addrOf = (wallet: string) => ledger.operators[wallet.replace(/^operator:/, '')] ?? wallet;
  const rules = alerts.rules.map((rule): AlertRule => {
    const { name, kind } = rule;
    if (kind === 'unknown_older') return { name, kind, ageMs: rule.age_ms };
    const amount = BigInt(rule.amount);
    return kind === 'drift_above'
      ? { name, kind, amount }
      : { name, kind, addr: addrOf(rule.wallet), amount };
  });
  return { stuckFactor: alerts.stuck_factor, stuckMinMs: alerts.stuck_min_ms, rules };
}

/** @param setting that of the service or of webhooks */
export function proxySettings({ proxies }: Config, setting: string): ProxySettings {
  if (setting === 'environment') return proxies;
  return setting === 'none' ? {} : { ...proxies, https: setting, http: setting };
}

const LOOPBACK = ['127.0.0.0/8', '::1/128'];

/** @param sandbox true allows receivers on loopback addresses */
export function webhookSettings(config: Config, sandbox: boolean): WebhookSettings {
  const { webhooks, database } = config;
  const { deliveries, events } = database.retention_days;
  return {
    ...webhookDefaults,
    keepMs: Math.min(deliveries, events) * DAY_MS,
    allowCidrs: [...webhooks.allow_cidrs, ...(sandbox ? LOOPBACK : [])],
    allowHttp: webhooks.allow_http,
    proxies: {
      ...proxySettings(config, webhooks.proxy),
      resolvesNames: webhooks.proxy_resolves_names,
    },
    send: { ...webhookDefaults.send, deadlineMs: webhooks.attempt_timeout_ms },
    concurrency: webhooks.concurrency_max,
    inFlightPerEndpoint: webhooks.in_flight_per_endpoint_max,
    endpointsPerOwner: webhooks.endpoints_per_owner_max,
  };
}

/** @param ledger its operators may get wallets later */
export function firstPollSettings(config: Config, ledger: EffectSettings) {
  return {
    isOwnWallet: (addr: string) => ownWalletsOf(ledger).some((own) => sameAddress(own, addr)),
    firstPollMs: config.gateway.first_poll_wait_ms,
    polls: config.daemon.roles.includes('workers'),
  };
}

export function gatewaySettings({ http, upstream, gateway }: Config) {
  return {
    bodyBytesMax: http.body_bytes_max,
    concurrencyMax: gateway.concurrency_max,
    readTimeoutMs: upstream.read_timeout_ms,
    writeTimeoutMs: upstream.write_timeout_ms,
    openPathsPerS: gateway.unauthenticated_per_s,
    queueTtlMs: gateway.queue_ttl_ms,
  };
}

export function reportSettings({ reports, reconciler, bucketKeys }: Config): ReportSettings {
  const { period, time_zone: timeZone } = reports.reconciliation;
  const { folder, bucket, formats } = reports.delivery;
  const { path_style: pathStyle, name, endpoint, ...rest } = bucket;
  return {
    ...DEFAULT_LIMITS,
    readLagMs: reconciler.read_lag_ms,
    quiescenceMs: reconciler.quiescence_ms,
    staleMs: reports.stale_after_ms,
    timeZone,
    organisation: reports.organisation ?? undefined,
    consoleUrl: reports.console_url ?? undefined,
    files: {
      formats,
      folder: folder === null ? undefined : resolve(folder),
      ...(name !== null && endpoint !== null && bucketKeys
        ? { bucket: { ...rest, name, endpoint, pathStyle, keys: bucketKeys } }
        : {}),
    },
    schedule: period === 'day' ? { every: 'day', timeZone } : { everyMs: period * MINUTE_MS },
  };
}

export function cronJobs({ reports }: Config): CronJob[] {
  const { cron, time_zone: timeZone } = reports.reconciliation;
  return [
    { name: 'reports', cron, timeZone },
    { name: 'housekeeping', cron: '17 3 * * *', timeZone: 'UTC' },
  ];
}

/** Undefined when people sign in by keys only. */
export function signInSettings({ console, oidcClientSecret }: Config): SignInSettings | undefined {
  const { oidc } = console;
  if (!oidc) return undefined;
  return {
    issuer: oidc.issuer,
    clientId: oidc.client_id,
    clientSecret: oidcClientSecret,
    redirectUrl: oidc.redirect_url,
    requested: oidc.requested,
    ownerClaim: oidc.owner_claim,
    groupsClaim: oidc.groups_claim,
    groups: oidc.groups,
    keyMs: oidc.key_hours * HOUR_MS,
  };
}
