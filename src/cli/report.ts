/** `tallyhook report`: asks the running daemon for a reconciliation report and prints it. */
import { parseJson } from '../kernel/json.ts';
import { printLine } from '../kernel/terminal.ts';
import { callDaemon, type Remote } from './remote.ts';

export async function makeReport(
  options: Remote & { from: string; to: string; format: string },
): Promise<number> {
  const { from, to, format } = options;
  const made = await callDaemon(options, {
    method: 'POST',
    path: '/api/reports',
    body: { kind: 'reconciliation', from, to },
  });
  const { id } = parseJson(made) as { id: string };
  const text = await callDaemon(options, {
    method: 'GET',
    path: `/api/reports/${id}?format=${encodeURIComponent(format)}`,
    accept: '*/*',
  });
  printLine(text);
  return 0;
}
