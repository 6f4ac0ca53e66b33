/** Lines of text as targets to watch, and sending many of them in parts. Pure but for the send. */

export type Target =
  | { kind: 'wallet'; addr: string }
  | { kind: 'contract'; contract_id: string }
  | { kind: 'token'; contract_id: string; token_id: string };

export interface ParsedLines {
  targets: Target[];
  /** What is no target, with the number of its line. */
  wrong: { line: number; text: string }[];
}

/** `0x…` is a wallet, `12` a contract, `12/34` a token; undefined for anything else. */
export function targetOf(text: string): Target | undefined {
  const [, contract, token] = /^(\d{1,78})(?:\s*[/,;\s]\s*(\d{1,78}))?$/.exec(text) ?? [];
  const plain = (digits: string) => digits.replace(/^0+(?=\d)/, '');
  if (contract && token)
    return { kind: 'token', contract_id: plain(contract), token_id: plain(token) };
  if (contract) return { kind: 'contract', contract_id: plain(contract) };
  return /^0x[!-~]{40}$/.test(text) ? { kind: 'wallet', addr: text } : undefined;
}

/** One target per line; empty lines, repetitions and lines that begin with # are left out. */
export function parseLines(text: string): ParsedLines {
  const found = new Map<string, Target>();
  const wrong: ParsedLines['wrong'] = [];
  for (const [n, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim().replace(/^"(.*)"$/, '$1');
    if (line === '' || line.startsWith('#')) continue;
    const target = targetOf(line);
    if (target) found.set(JSON.stringify(target), target);
    else wrong.push({ line: n + 1, text: line.slice(0, 60) });
  }
  return { targets: [...found.values()], wrong };
}

const PART = 500;

/**
 * Sends the targets from `done` on, part by part.
 * @param onProgress is told how many are done, and says whether to go on
 */
export async function sendInParts(
  targets: readonly Target[],
  done: number,
  send: (part: readonly Target[]) => Promise<unknown>,
  onProgress: (done: number) => boolean,
): Promise<void> {
  for (let from = done; from < targets.length; from += PART) {
    const part = targets.slice(from, from + PART);
    await send(part);
    if (!onProgress(from + part.length)) return;
  }
}
