/**
 * What every step of the walk-through has: the daemon's API, the receiver, and the right to say
 * that something did not hold.
 */
import { request } from 'undici';
import type { RunningDaemon } from '../../daemon/daemon.ts';
import { type Json, jsonText, parseJson } from '../../kernel/json.ts';
import type { DemoReceiver, Received } from './receiver.ts';
import type { DemoService } from './service.ts';

/** How long a step waits for what must be seen. */
export const PATIENCE_MS = 60_000;

export interface Stage {
  service: DemoService;
  receiver: DemoReceiver;
  daemon: RunningDaemon;
  adminKey: string;
  /** What later steps need of earlier ones. */
  memory: { lost?: string; resolution?: string };
}

/** Sends one request to the daemon with the admin key. */
export async function call(
  stage: Stage,
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  body?: Json | string,
): Promise<{
  status: number;
  body: Record<string, Json>;
  operation: string | undefined;
  outcome: string | undefined;
}> {
  const form = typeof body === 'string';
  const answer = await request(`${stage.daemon.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${stage.adminKey}`,
      ...(body === undefined
        ? {}
        : { 'content-type': form ? 'application/x-www-form-urlencoded' : 'application/json' }),
    },
    body: body === undefined ? null : form ? body : jsonText(body),
    headersTimeout: PATIENCE_MS,
  });
  const headerOf = (name: string) => {
    const value = answer.headers[name];
    return typeof value === 'string' ? value : undefined;
  };
  const text = await answer.body.text();
  return {
    status: answer.statusCode,
    body: (text ? parseJson(text) : {}) as Record<string, Json>,
    operation: headerOf('tallyhook-operation'),
    outcome: headerOf('tallyhook-outcome'),
  };
}

/** @throws Error with the words when it does not hold */
export function insist(holds: unknown, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise);
}

/** The first genuine webhook that fits. @throws Error when none comes in time */
export async function webhook(
  { receiver }: Stage,
  words: string,
  fits: (received: Received) => boolean,
): Promise<Received> {
  const found = await receiver.waitFor(fits, PATIENCE_MS);
  insist(found, `no webhook came within ${PATIENCE_MS / 1000} s: ${words}`);
  return found;
}

/** The webhook of that type about that operation. */
export function about(stage: Stage, type: string, operation: string): Promise<Received> {
  return webhook(
    stage,
    `${type} of ${operation}`,
    (r) => r.type === type && r.data.operation_id === operation,
  );
}

/** True for two spellings of one address. */
export function same(a: unknown, b: string): boolean {
  return typeof a === 'string' && a.toLowerCase() === b.toLowerCase();
}
