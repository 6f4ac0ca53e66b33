/**
 * What the gateway and the observer have to do with each other: reads of apps are looks that cost
 * nothing, and what was last seen is the pre-image of a write.
 */
import type { Db } from '../db/connect.ts';
import type { ObservedRead, WriteDescription } from '../gateway/gateway.ts';
import type { Json } from '../kernel/json.ts';
import type { Log } from '../kernel/log.ts';
import { lastSeen, type ObjectRef, type Observer, objectName } from '../observer/observer.ts';
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

async function noteRead(observer: Observer, ref: ObjectRef, read: ObservedRead): Promise<void> {
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
function refOf({ path, query }: ObservedRead): ObjectRef | undefined {
  const token = /^\/v1\/chain\/erc721\/(\d+)\/tokens\/(\d+)$/.exec(path);
  if (token?.[1] && token[2]) {
    return { kind: 'token', contractId: BigInt(token[1]), tokenId: BigInt(token[2]) };
  }
  const addr = path === '/v1/app/token/account' ? new URLSearchParams(query).get('addr') : null;
  return addr?.length === 42 ? { kind: 'wallet', addr } : undefined;
}

/** What was last seen of the parties of a write, for its intent. */
export function preImageFrom(db: Db): (write: WriteDescription) => Promise<Json> {
  return async ({ family, fields }): Promise<Json> => {
    if (family === 'nft') {
      const { contractId, tokenId } = fields;
      if (contractId == null || tokenId == null) return null;
      const [seen] = await lastSeen(db, [objectName({ kind: 'token', contractId, tokenId })]);
      return seen ? { token: seen.last_seen, at: seen.last_started_at } : null;
    }
    const addrs = [fields.fromAddr, fields.toAddr].filter((addr) => addr != null);
    if (addrs.length === 0) return null;
    const seen = await lastSeen(
      db,
      addrs.map((addr) => objectName({ kind: 'wallet', addr })),
    );
    return {
      wallets: seen.map((row) => ({
        name: row.name,
        at: row.last_started_at,
        seen: row.last_seen,
      })),
    };
  };
}
