/** Reads of apps through the gateway are looks that cost nothing: here they become observations. */
import type { ObservedRead } from '../gateway/gateway.ts';
import type { Log } from '../kernel/log.ts';
import type { Observer, TargetRef } from '../observer/observer.ts';
import { readToken, readWallet } from '../upstream/upstream.ts';

/** Reads waiting to be recorded at most; a look that does not fit is simply not used. */
const WAITING_MAX = 100;

/** Records reads of apps in the background; a failure costs a look, nothing else. */
export function observedRead(observer: Observer, log: Log): (read: ObservedRead) => void {
  let waiting = 0;
  return (read) => {
    const ref = refOf(read);
    if (!ref || read.status !== 200 || waiting >= WAITING_MAX) return;
    waiting++;
    noteRead(observer, ref, read)
      .catch((error: unknown) => log.debug({ err: error }, 'an observed read was not recorded'))
      .finally(() => {
        waiting--;
      });
  };
}

async function noteRead(observer: Observer, ref: TargetRef, read: ObservedRead): Promise<void> {
  const { startedAt, endedAt, body } = read;
  const seen = { startedAt, endedAt, result: 'seen' as const, raw: null };
  if (ref.kind === 'wallet') {
    const record = readWallet(body, ref.addr);
    if (record) await observer.noteRead(ref, { ...seen, record });
  } else if (ref.kind === 'token') {
    const record = readToken(body, ref.contractId, ref.tokenId);
    if (record) await observer.noteRead(ref, { ...seen, record });
  }
}

/** Which object a read looks at, if it is one that we observe. */
function refOf({ path, query }: ObservedRead): TargetRef | undefined {
  const token = /^\/v1\/chain\/erc721\/(\d+)\/tokens\/(\d+)$/.exec(path);
  if (token?.[1] && token[2]) {
    return { kind: 'token', contractId: BigInt(token[1]), tokenId: BigInt(token[2]) };
  }
  const addr = path === '/v1/app/token/account' ? new URLSearchParams(query).get('addr') : null;
  return addr?.length === 42 ? { kind: 'wallet', addr } : undefined;
}
