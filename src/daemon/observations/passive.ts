/** Turns reads of apps through the gateway into passive observations, in the background. */
import type { AnsweredRead } from '../../gateway/gateway.ts';
import type { Log } from '../../kernel/telemetry/log.ts';
import type { Observer, TargetRef } from '../../observer/observer.ts';
import { readToken, readWallet } from '../../upstream/upstream.ts';

/** Reads waiting to be recorded; further ones are dropped. */
const PENDING_MAX = 100;

/** A read that cannot be recorded is logged and dropped. */
export function recordPassiveReads(
  observer: Pick<Observer, 'noteRead'>,
  log: Log,
): (read: AnsweredRead) => void {
  let pending = 0;
  return (read) => {
    const target = targetOf(read);
    if (!target || read.status !== 200 || pending >= PENDING_MAX) return;
    pending++;
    record(observer, target, read)
      .catch((error: unknown) => log.debug({ err: error }, 'passive observation not recorded'))
      .finally(() => {
        pending--;
      });
  };
}

async function record(
  observer: Pick<Observer, 'noteRead'>,
  target: TargetRef,
  { startedAt, endedAt, body }: AnsweredRead,
): Promise<void> {
  const seen = { startedAt, endedAt, result: 'seen' as const, raw: null };
  if (target.kind === 'wallet') {
    const wallet = readWallet(body, target.addr);
    if (wallet) await observer.noteRead(target, { ...seen, record: wallet });
  } else if (target.kind === 'token') {
    const token = readToken(body, target.contractId, target.tokenId);
    if (token) await observer.noteRead(target, { ...seen, record: token });
  }
}

function targetOf({ path, query }: AnsweredRead): TargetRef | undefined {
  const token = /^\/v1\/chain\/erc721\/(\d+)\/tokens\/(\d+)$/.exec(path);
  if (token?.[1] && token[2]) {
    return { kind: 'token', contractId: BigInt(token[1]), tokenId: BigInt(token[2]) };
  }
  const addr = path === '/v1/app/token/account' ? new URLSearchParams(query).get('addr') : null;
  return addr?.length === 42 ? { kind: 'wallet', addr } : undefined;
}
