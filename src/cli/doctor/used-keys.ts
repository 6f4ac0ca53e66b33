/**
 * Reads the idempotency keys that were used after a backup: a key on each line, or events of a
 * subscriber's copy of the feed, one JSON document on each line.
 */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { Failure } from '../../kernel/errors.ts';
import { tryParseJson } from '../../kernel/json.ts';
import type { UsedSinceBackup } from '../../operations/operations.ts';

const GROUP_MAX = 1_000;
const KEY_MAX = 1_000;
/** Errors after which the key was free again. */
const UNAPPLIED = ['not_sent', 'unavailable'];

/** The writes of the file, in groups. @throws Failure `bad_setting` with the line */
export async function* readUsedKeys(path: string): AsyncGenerator<UsedSinceBackup[]> {
  const lines = createInterface({ input: createReadStream(path), crlfDelay: 1_000 });
  const group: UsedSinceBackup[] = [];
  let n = 0;
  try {
    for await (const line of lines) {
      n += 1;
      const used = usedOf(line.trim(), `${path}:${n}`);
      if (used) group.push(used);
      if (group.length === GROUP_MAX) yield group.splice(0);
    }
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure('bad_setting', `${path} cannot be read`);
  }
  yield group;
}

function usedOf(line: string, where: string): UsedSinceBackup | undefined {
  if (line === '') return undefined;
  if (!line.startsWith('{')) return { key: keyOf(line, where), operationId: null };
  const parsed = tryParseJson(line) as Members | undefined;
  if (typeof parsed !== 'object') throw new Failure('bad_setting', `${where} is not JSON`);
  const { idempotency_key, operation_id, error } = (parsed.data ?? parsed) as Members;
  if (UNAPPLIED.includes(String(error?.class))) return undefined;
  const key = typeof idempotency_key === 'string' ? keyOf(idempotency_key, where) : null;
  const operationId = typeof operation_id === 'string' ? operation_id : null;
  return key === null && operationId === null ? undefined : { key, operationId };
}

interface Members {
  data?: Members;
  idempotency_key?: unknown;
  operation_id?: unknown;
  error?: { class?: unknown } | null;
}

function keyOf(text: string, where: string): string {
  if (text.length <= KEY_MAX) return text;
  throw new Failure('bad_setting', `${where} is longer than ${KEY_MAX} characters`);
}
