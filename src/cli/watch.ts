/** `tallyhook watch`: puts an object under observation on the running daemon. */
import { Failure } from '../kernel/errors.ts';
import { parseJson } from '../kernel/json.ts';
import { printLine } from '../kernel/terminal.ts';
import { callDaemon, type Remote } from './remote.ts';

export async function addWatch(
  kind: string,
  names: string[],
  options: Remote & { json?: true },
): Promise<number> {
  const body = watchOf(kind, names);
  const text = await callDaemon(options, { method: 'POST', path: '/api/watches', body });
  const { id } = parseJson(text) as { id?: string };
  printLine(options.json ? text : `${kind} ${names.join(' ')} is watched as ${id}`);
  return 0;
}

function watchOf(kind: string, [first, second]: string[]): object {
  if (kind === 'wallet') return { kind, addr: first };
  if (kind === 'contract') return { kind, contract_id: first };
  if (kind === 'token' && second !== undefined)
    return { kind, contract_id: first, token_id: second };
  throw new Failure(
    'bad_setting',
    'say: watch wallet <addr>, watch contract <id>, or watch token <contract id> <token id>',
  );
}
