/**
 * The order of events by `subject_seq`, which counts the events of a subject from 1 without gaps:
 * of an operation, a wallet, a token. It counts every type, so an endpoint that subscribed to some
 * types sees gaps where the others are.
 */
import type { AnyEvent } from './event.ts';

export type Order =
  /** The number after the last one, or the first that is seen of its subject. */
  | { kind: 'next'; seq: number }
  /** Numbers between are missing: of other types, on their way, or lost. */
  | { kind: 'gap'; seq: number; missing: number }
  /** A newer one was handled before. */
  | { kind: 'stale'; seq: number; newest: number };

/** A store of your own makes the order hold across restarts. */
export interface OrderStore {
  /** The greatest number that was handled of a subject. */
  newest(subject: string): number | undefined | Promise<number | undefined>;
  handled(subject: string, seq: number): unknown;
}

/** Remembers the numbers of that many subjects that were last heard of. */
export function memoryOrder(max = 10_000): OrderStore {
  const numbers = new Map<string, number>();
  return {
    newest: (subject) => numbers.get(subject),
    handled(subject, seq) {
      const newest = Math.max(seq, numbers.get(subject) ?? 0);
      numbers.delete(subject);
      numbers.set(subject, newest);
      for (const oldest of numbers.keys()) {
        if (numbers.size <= max) break;
        numbers.delete(oldest);
      }
    },
  };
}

export function orderOf(seq: number, newest: number | undefined): Order {
  if (newest !== undefined && seq <= newest) return { kind: 'stale', seq, newest };
  const missing = newest === undefined ? 0 : seq - newest - 1;
  return missing === 0 ? { kind: 'next', seq } : { kind: 'gap', seq, missing };
}

/** What `subject_seq` counts: `wallet:0x…`, `operation:op_…`; undefined for an unknown group. */
export function subjectOf({ type, data }: Pick<AnyEvent, 'type' | 'data'>): string | undefined {
  const of = (name: string) => String((data as Record<string, unknown>)[name]);
  switch (type.slice(0, type.indexOf('.'))) {
    case 'operation':
      return `operation:${of('operation_id')}`;
    case 'token':
      return `token:${of('contract_id')}:${of('token_id')}`;
    case 'wallet':
      return `wallet:${of('addr').toLowerCase()}`;
    case 'alert':
      return `alert:${of('alert_id')}`;
    case 'report':
      return `report:${of('report_id')}`;
    case 'endpoint':
    case 'delivery':
      return `endpoint:${of('endpoint_id')}`;
    case 'period':
      return 'periods';
    case 'service':
      return 'service';
    case 'observer':
      return 'observer';
    case 'ledger':
      return type === 'ledger.verify_failed' ? 'ledger' : 'ledger:fee_rule';
    default:
      return undefined;
  }
}
