/** Targets to watch: one as a person writes it, and many as the CSV that the API takes. Pure. */

export type Target =
  | { kind: 'wallet'; addr: string }
  | { kind: 'contract'; contract_id: string }
  | { kind: 'token'; contract_id: string; token_id: string };

/** 42 characters are a wallet, `12` a contract, `12/34` a token; undefined for anything else. */
export function targetOf(text: string): Target | undefined {
  const [, contract, token] = /^(\d{1,78})(?:\s*[/,;\s]\s*(\d{1,78}))?$/.exec(text) ?? [];
  const plain = (digits: string) => digits.replace(/^0+(?=\d)/, '');
  if (contract && token)
    return { kind: 'token', contract_id: plain(contract), token_id: plain(token) };
  if (contract) return { kind: 'contract', contract_id: plain(contract) };
  return /^[!-~]{42}$/.test(text) ? { kind: 'wallet', addr: text } : undefined;
}

const HEADER = 'addr,contract_id,token_id';

export interface Csv {
  file: Blob;
  /** Lines of it before the first one that was given. */
  added: number;
}

/** A file with a header is sent as it is; of another one each line is a target. */
export async function csvOf(given: Blob): Promise<Csv> {
  const type = 'text/csv';
  const isCsv = /^\uFEFF?"?(kind|addr|contract_id|token_id)\b/.test(
    await given.slice(0, 50).text(),
  );
  if (isCsv) return { file: new Blob([given], { type }), added: 0 };
  const lines = (await given.text()).split(/\r?\n/).map((line) => rowOf(line.trim()));
  return { file: new Blob([[HEADER, ...lines].join('\n')], { type }), added: 1 };
}

/** What is no target becomes the cell of an address, which the API refuses with its reason. */
function rowOf(line: string): string {
  if (line === '' || line.startsWith('#')) return '';
  const target = targetOf(line);
  if (target?.kind === 'contract') return `,${target.contract_id}`;
  if (target?.kind === 'token') return `,${target.contract_id},${target.token_id}`;
  return `"${line.replaceAll('"', '""')}"`;
}
