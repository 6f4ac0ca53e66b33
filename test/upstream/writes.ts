/** A write of an app, and an upstream that forwards it to a script. */
import type { ForwardRequest } from '../../src/upstream/upstream.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { type Reply, type Script, startScripted, upstreamTo } from './scripted-service.ts';

export const GIVE = '/v1/app/token/operations/7/give';
export const DONE: Reply = [200, { status: 200, data: { tx_app_no: 1, tx_log_no: 2n ** 70n } }];
export const BODY = '{"toAddr": "x",  "amount": 1.0}';

/** A write that has five seconds from `now`. */
export function give(now: number, more: Partial<ForwardRequest> = {}): ForwardRequest {
  return {
    method: 'POST',
    path: GIVE,
    host: 'tx',
    headers: [['content-type', 'application/json;charset=weird']],
    body: Buffer.from(BODY),
    authorization: { managed: true },
    family: 'transaction',
    deadlineAt: now + 5000,
    ...more,
  };
}

/** Forwards on a manual clock; the answer's `forward` sends one such write. */
export async function forwardTo(script: Script, tokens?: Script, clock = manualClock()) {
  const service = await startScripted(script, tokens);
  const made = await upstreamTo(service.origin, clock);
  const forward = (more: Partial<ForwardRequest> = {}) =>
    made.upstream.forward(give(clock.now(), more));
  return { service, clock, forward, ...made };
}
