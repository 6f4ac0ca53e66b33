/** `tallyhook freeze` and `unfreeze`: stops and releases all writes on the running daemon. */
import { parseJson } from '../kernel/json.ts';
import { printLine } from '../kernel/terminal.ts';
import { callDaemon, type Remote } from './remote.ts';

/** @param path `freeze` or `unfreeze` */
export async function orderFreeze(
  path: 'freeze' | 'unfreeze',
  options: Remote & { reason: string; json?: true },
): Promise<number> {
  const { reason } = options;
  const text = await callDaemon(options, {
    method: 'POST',
    path: `/api/${path}`,
    body: { reason },
  });
  const freeze = parseJson(text) as { frozen_at?: string; frozen_by?: string; reason?: string };
  const { frozen_at: at, frozen_by: by, reason: why } = freeze;
  const said =
    path === 'freeze'
      ? `writes are frozen since ${at} by ${by}: ${why}`
      : `writes are released; they were frozen since ${at} by ${by}: ${why}`;
  printLine(options.json ? text : said);
  return 0;
}
