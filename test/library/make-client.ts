/**
 * `node test/library/make-client.ts` writes library/client/schema.ts from the document of the API.
 * `openapi-typescript` is run and not installed, because it needs another compiler than ours.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describeApi } from '../../src/api/api.ts';

const GENERATOR = 'openapi-typescript@7.13.0';
const DEADLINE_MS = 200_000;

export const SCHEMA = join(import.meta.dirname, '../../library/client/schema.ts');

interface Answer {
  description: string;
  content?: object;
}
interface Operation {
  responses: Record<string, Answer>;
}

/**
 * The document with one answer for all problems of an operation, which have one form, and without
 * webhooks, of which `tallyhook/receive` has the types.
 */
function documentText(): string {
  const { webhooks: _, ...document } = JSON.parse(JSON.stringify(describeApi()));
  for (const methods of Object.values<Record<string, Operation>>(document.paths))
    for (const operation of Object.values(methods)) {
      const all = Object.entries(operation.responses);
      const isProblem = (status: string) => status >= '4' || status === 'default';
      const content = all.filter(([status]) => isProblem(status)).map(([, one]) => one.content);
      operation.responses = {
        ...Object.fromEntries(all.filter(([status]) => !isProblem(status))),
        default: { description: 'A problem', content: Object.assign({}, ...content) },
      };
    }
  return JSON.stringify(document);
}

/** The first line of the file, which shows that the document has changed since. */
export function headOf(document = documentText()): string {
  const hash = createHash('sha256').update(document).digest('hex');
  const script = '`node test/library/make-client.ts`';
  return `/** By ${script}, of the document with the SHA-256 ${hash}. */`;
}

/** The text of library/client/schema.ts. */
export async function clientSchema(): Promise<string> {
  const document = documentText();
  const folder = await mkdtemp(join(tmpdir(), 'client-'));
  try {
    await writeFile(join(folder, 'openapi.json'), document);
    const args = ['--yes', GENERATOR, 'openapi.json', '-o', 'schema.ts'];
    await promisify(execFile)('npx', args, { cwd: folder, timeout: DEADLINE_MS });
    const text = await readFile(join(folder, 'schema.ts'), 'utf8');
    return `${headOf(document)}\n${withoutNothing(text)}`;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Members that say that there is none, and headers of which nothing is said, are half of it. */
function withoutNothing(text: string): string {
  return text
    .replace(/^ +\w+\?: never;\n/gm, '')
    .replace(/^ +headers: \{\n +\[name: string\]: unknown;\n +\};\n/gm, '')
    .replace(/\{\n +\}/g, '{}')
    .replace(/^ +parameters: \{\};\n/gm, '');
}

if (import.meta.main) await writeFile(SCHEMA, await clientSchema());
