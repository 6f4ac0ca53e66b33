/**
 * The messages between a daemon and the process that sends its webhooks. That process reads no
 * settings of its own, so both always have the same.
 */
import type { MetricsSnapshot } from '../../kernel/telemetry/metrics.ts';
import type { WebhookSettings } from '../../webhooks/webhooks.ts';
import type { Config } from '../config/config.ts';
import type { KeyPair } from '../master-key.ts';

/** The first message. */
export interface Start {
  kind: 'start';
  databaseUrl: string;
  config: Pick<Config, 'daemon' | 'database' | 'log'>;
  /** Proved by the daemon. */
  keys: KeyPair;
  settings: WebhookSettings;
}

/** How many daemons live, this one included, and how many of them deliver. */
export interface Daemons {
  living: number;
  delivering: number;
}

export type ToDelivery =
  | Start
  /** There may be new deliveries. */
  | { kind: 'wake' }
  /** To be answered by a report, which also shows that the process is not blocked. */
  | { kind: 'report'; daemons: Daemons }
  /** Finish the sends and end. */
  | { kind: 'stop' };

export type FromDelivery = { kind: 'ready' } | { kind: 'report'; metrics: MetricsSnapshot };
