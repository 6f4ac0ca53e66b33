/** Lost answers of NFT writes, by what a look at their token says. */
import type { Tx } from '../db/connect.ts';
import type { Operation } from '../journal/journal.ts';
import type { Instant } from '../kernel/clock.ts';
import type { LookToJudge } from '../observer/observer.ts';
import type { EventDraft } from '../outbox/events.ts';
import type { Context } from './reconciler.ts';
import { isQuiet, takeEvidence } from './resolution.ts';
import type { TokenState } from './token-rule.ts';
import { tokenEvidence } from './unknown-rule.ts';

/** Judges every unknown operation of one token by one look at it. */
export async function judgeLostTokenWrites(
  tx: Tx,
  context: Context,
  operations: readonly Operation[],
  token: TokenState | 'absent',
  look: LookToJudge,
  now: Instant,
): Promise<EventDraft[]> {
  const unknown = operations.filter((operation) => operation.state === 'unknown');
  const events: EventDraft[] = [];
  for (const operation of unknown) {
    // Two lost writes of one kind on one token cannot be told apart by the token alone.
    if (unknown.some((other) => other !== operation && other.kind === operation.kind)) continue;
    const hash = token === 'absent' ? null : token.lastTxHash;
    const foreign = operations.some(
      (o) => o !== operation && o.txHash !== null && o.txHash === hash,
    );
    const said = tokenEvidence(operation, token, foreign);
    if (!said) continue;
    const quiet = isQuiet(operation, look.started_at, context.settings.quiescenceMs);
    if (said.outcome === 'not_executed' && !quiet) continue;
    const evidence = { look: look.id, cause: said.cause };
    const { outcome } = said;
    const [startedAt, endedAt] = [look.started_at, look.ended_at];
    const txHash = outcome === 'executed' ? hash : null;
    const given = { outcome, basis: 'token', enough: true, evidence, startedAt, endedAt, txHash };
    events.push(...(await takeEvidence(tx, context, operation, given, now)));
  }
  return events;
}
