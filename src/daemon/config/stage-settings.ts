/**
 * From the configuration file's names to each stage's own settings. Pure; one function per stage.
 */

import { addressKey } from '../../kernel/addresses.ts';
import { type Books, walletEffectsOf, walletsOfBooks } from '../../ledger/ledger.ts';
import type { ObserverSettings } from '../../observer/observer.ts';
import type { OperationsSettings } from '../../operations/operations.ts';
import type { ReconcilerSettings } from '../../reconciler/reconciler.ts';
import { DEFAULT_LIMITS, type ReportSettings } from '../../reports/reports.ts';
import type { UpstreamSettings } from '../../upstream/upstream.ts';
import { type WebhookSettings, webhookDefaults } from '../../webhooks/webhooks.ts';
import type { Nudge } from '../workers/cron.ts';
import type { Config } from './config.ts';

export function upstreamSettings({ upstream }: Config): UpstreamSettings {
  return {
    readTimeoutMs: upstream.read_timeout_ms,
    writeTimeoutMs: upstream.write_timeout_ms,
    connectTimeoutMs: upstream.connect_timeout_ms,
    bodyBytesMax: upstream.body_bytes_max,
    budgetPerS: upstream.budget_per_s,
    startRatePerS: Math.min(upstream.start_rate_per_s, upstream.budget_per_s),
    concurrencyMax: upstream.concurrency_max,
    steadyShare: upstream.steady_share,
    waitingMax: upstream.waiting_max,
    waitMs: upstream.wait_ms,
    forwardsMax: upstream.forwards_max,
  };
}

export function booksOf({ ledger }: Config): Books {
  return {
    feeMode: ledger.fee_mode,
    operators: new Map(Object.entries(ledger.operators)),
    feesAddr: ledger.fees_addr ?? undefined,
    collectionAddr: ledger.collection_addr ?? undefined,
  };
}

/** Writes are told apart by the wallets of users; those of our own books are always under way. */
export function operationsSettings(
  { operations, upstream }: Config,
  books: Books,
): OperationsSettings {
  return {
    admissionWaitMs: operations.conflict_wait_ms,
    refuseAmbiguous: operations.refuse_conflicts,
    waitingMax: operations.waiting_max,
    queueMax: operations.queue_max,
    queuedSendWithinMs: upstream.write_timeout_ms,
    touchedBy: touchedBy(books),
  };
}

export function touchedBy(books: Books): OperationsSettings['touchedBy'] {
  const ours = new Set(walletsOfBooks(books).map(addressKey));
  const nothing = {
    ...{ fromAddr: null, toAddr: null, operationNo: null, amount: null, feeAmount: null },
  };
  return (kind, fields) => {
    const effects = walletEffectsOf({ ...nothing, ...fields, kind }, books);
    const users = new Map([...effects].filter(([key]) => !ours.has(key)));
    return { users, all: [...effects.keys()] };
  };
}

function rhythmOf({ observer }: Config) {
  return {
    steadyMs: observer.steady_ms,
    pendingMinMs: observer.pending_min_ms,
    pendingMaxMs: observer.pending_max_ms,
  };
}

export function observerSettings(config: Config): ObserverSettings {
  const { observer, upstream } = config;
  return {
    ...rhythmOf(config),
    steadyShare: upstream.steady_share,
    probeMs: observer.probe_ms,
    probeDownMs: observer.probe_down_ms,
    pollTimeoutMs: observer.poll_timeout_ms,
  };
}

export function reconcilerSettings(config: Config): ReconcilerSettings {
  const { reconciler } = config;
  return {
    ...rhythmOf(config),
    readLagMs: reconciler.read_lag_ms,
    quiescenceMs: reconciler.quiescence_ms,
    undecidedAfterMs: reconciler.undecided_after_ms,
  };
}

const LOOPBACK = ['127.0.0.0/8', '::1/128'];

/** @param sandbox with the sandbox in use, receivers on this machine are allowed */
export function webhookSettings({ webhooks }: Config, sandbox: boolean): WebhookSettings {
  return {
    ...webhookDefaults,
    allowCidrs: [...webhooks.allow_cidrs, ...(sandbox ? LOOPBACK : [])],
    send: { ...webhookDefaults.send, deadlineMs: webhooks.deadline_ms },
    concurrency: webhooks.concurrency,
    inFlightPerEndpoint: webhooks.in_flight_per_endpoint,
  };
}

/** The first look before a wallet's first write; our own books' wallets need none. */
export function firstPollSettings(config: Config) {
  const { operators, feesAddr, collectionAddr } = booksOf(config);
  const own = [...operators.values(), feesAddr, collectionAddr].filter((addr) => addr != null);
  return {
    ownWallets: new Set(own.map(addressKey)),
    firstPollMs: config.gateway.first_poll_ms,
  };
}

export function gatewaySettings({ http, upstream, gateway }: Config) {
  return {
    bodyBytesMax: http.body_bytes_max,
    concurrencyMax: http.concurrency_max,
    readTimeoutMs: upstream.read_timeout_ms,
    writeTimeoutMs: upstream.write_timeout_ms,
    openPathsPerS: gateway.open_paths_per_s,
    queueTtlMs: gateway.queue_ttl_ms,
  };
}

const MINUTE_MS = 60_000;

export function reportSettings({ reports, reconciler }: Config): ReportSettings {
  const { period, time_zone: timeZone } = reports.reconciliation;
  return {
    ...DEFAULT_LIMITS,
    readLagMs: reconciler.read_lag_ms,
    quiescenceMs: reconciler.quiescence_ms,
    staleMs: reports.stale_after_ms,
    schedule: period === 'day' ? { every: 'day', timeZone } : { everyMs: period * MINUTE_MS },
  };
}

/** When the calendar says to look: for due reports, and for the house-keeping of partitions. */
export function nudgesOf({ reports }: Config): Nudge[] {
  const { cron, time_zone: timeZone } = reports.reconciliation;
  return [
    { name: 'reports', cron, timeZone },
    { name: 'house-keeping', cron: '17 3 * * *', timeZone: 'UTC' },
  ];
}
