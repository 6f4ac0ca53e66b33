/**
 * What the service answers to the reads of this daemon, counted for the state of the service: the
 * last answer, and the failures since. A refusal, an
 * unreadable answer, a limit or a missing client token says neither.
 */
import type { Observation, Upstream } from '../../upstream/upstream.ts';
import type { RealRequests } from './state.ts';

type Read = Pick<Upstream, 'account' | 'token' | 'tokens'>;

/** The reads, and the count that each of them changes when it ends. */
export function countingReads<U extends Read>(upstream: U): { upstream: U; real: RealRequests } {
  const real: RealRequests = { answeredAt: null, failures: 0, isMaintenance: false };
  const counted = async <T>(reading: Promise<Observation<T>>): Promise<Observation<T>> => {
    const observation = await reading;
    count(real, observation);
    return observation;
  };
  const reads: Read = {
    account: (...input) => counted(upstream.account(...input)),
    token: (...input) => counted(upstream.token(...input)),
    tokens: (...input) => counted(upstream.tokens(...input)),
  };
  return { upstream: { ...upstream, ...reads }, real };
}

function count(real: RealRequests, observation: Observation<unknown>): void {
  if (observation.result !== 'inconclusive')
    Object.assign(real, { answeredAt: observation.endedAt, failures: 0, isMaintenance: false });
  else if (!observation.isUnsent && FAILURES.has(observation.cause))
    Object.assign(real, {
      failures: real.failures + 1,
      isMaintenance: observation.cause === 'maintenance',
    });
}

const FAILURES = new Set(['unreachable', 'error', 'maintenance']);
