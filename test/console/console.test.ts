/** What the console serves: a shell that allows its own files only, and those files. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { makeConsole } from '../../src/console/console.ts';

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const app = makeConsole();
const get = (path: string, headers: Record<string, string> = {}) => app.request(path, { headers });
const shell = await (await get('/')).text();
/** Under which the shell has its files. */
const folder = /src="([^"]+)\/app\.ts"/.exec(shell)?.[1] ?? '';

/** The text of the shell, and of everything that it and its modules load. */
async function everything(): Promise<Map<string, string>> {
  const found = new Map([['/', shell]]);
  const imports = /"imports":(\{[^}]*\})/.exec(shell)?.[1] ?? '{}';
  const libraries: Record<string, string> = JSON.parse(imports);
  const paths = [`${folder}/style.css`, `${folder}/app.ts`, ...Object.values(libraries)];
  for (const path of paths) {
    const answer = await get(path);
    expect(answer.status, path).toBe(200);
    const text = await answer.text();
    found.set(path, text);
    for (const [, name = ''] of text.matchAll(/(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]/g)) {
      const target = new URL(name, `http://x${path}`).pathname;
      if (!paths.includes(target)) paths.push(target);
    }
  }
  return found;
}

describe('The page of the console', () => {
  it.each(['/', '/operations', '/operations/op_1'])('%s is the same shell', async (path) => {
    const answer = await get(path);
    expect([answer.status, await answer.text()]).toEqual([200, shell]);
  });

  it('Its policy allows its own files, and the import map by its hash', async () => {
    const answer = await get('/');
    const policy = (answer.headers.get('content-security-policy') ?? '').split('; ');
    const map = /<script type="importmap">([\s\S]*?)<\/script>/.exec(await answer.text())?.[1];
    expect(policy).toEqual([
      "default-src 'none'",
      `script-src 'self' ${hashOf(map ?? '')}`,
      "style-src 'self'",
      "connect-src 'self'",
      'img-src data:',
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ]);
  });

  it('Nothing is loaded from elsewhere, no markup has handlers, and no code writes markup', async () => {
    for (const [path, text] of await everything()) {
      if (path === '/' || path.includes('/views/'))
        expect(text, path).not.toMatch(/https?:\/\/(?!example)/);
      expect(text, path).not.toMatch(/sourceMappingURL/);
      if (path.includes('/library/')) continue;
      expect(text, path).not.toMatch(
        /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(/,
      );
      expect(text, path).not.toMatch(/<[^>]*\son\w+="/);
    }
  });

  it('All of it is less than 150 KB, compressed', async () => {
    let bytes = 0;
    for (const path of (await everything()).keys()) {
      const answer = await get(path, { 'accept-encoding': 'gzip' });
      bytes += (await answer.arrayBuffer()).byteLength;
    }
    expect(bytes).toBeGreaterThan(20_000);
    expect(bytes).toBeLessThan(150_000);
  });

  it('Code that is shown for receivers has its comments and empty lines', async () => {
    const path = `${folder}/resources/delivery/samples.ts`;
    const code = (await everything()).get(path) ?? '';
    expect(code).not.toContain('/**');
    expect(code).toContain("'standardwebhooks';\n\nconst webhook =");
    expect(code).toContain('\n  // The body as it arrived, before anything parses it.\n');
  });

  it('A file that the browser has is not asked for again, and of another version not sent again', async () => {
    const own = await get(`${folder}/app.ts`);
    expect(own.headers.get('content-type')).toMatch(/^text\/javascript/);
    expect(own.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    for (const place of ['/console', '/console/v-of_another-daemon']) {
      const path = `${place}/app.ts`;
      const answer = await get(path);
      expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-cache']);
      const etag = answer.headers.get('etag') ?? '';
      expect((await get(path, { 'if-none-match': etag })).status).toBe(304);
      expect((await get(path, { 'if-none-match': '"other"' })).status).toBe(200);
    }
  });

  it('What every view needs is loaded at once with the page', async () => {
    const all = await everything();
    const preloaded = [...shell.matchAll(/modulepreload" href="([^"]+)"/g)].map(([, path]) => path);
    const needed = new Set([`${folder}/app.ts`]);
    for (const path of needed)
      for (const [, name = ''] of (all.get(path) ?? '').matchAll(/ from\s*['"](\.[^'"]+)['"]/g))
        needed.add(new URL(name, `http://x${path}`).pathname);
    expect(preloaded).toEqual(expect.arrayContaining([...needed]));
  });

  it('Every page that has a view is served, and no other', async () => {
    const pages = (await everything()).get(`${folder}/app.ts`) ?? '';
    const views = /VIEWS\b[^{]*\{([\s\S]*?)\n\};/.exec(pages)?.[1] ?? '';
    const names = [...views.matchAll(/^ *'?(\w*)'?: \[/gm)].map(([, name]) => name ?? '');
    expect(names).toContain('operations');
    for (const name of names) expect((await get(`/${name}`)).status, name).toBe(200);
    expect((await get('/operation')).status).toBe(404);
  });

  it('A file that is not part of it is not found', async () => {
    const own = ['tsconfig.json', '../console.ts', 'x', ''].map((name) => `${folder}/${name}`);
    const others = [...own, '/console/tsconfig.json', '/console/../console.ts', '/nothing'];
    for (const path of others) expect((await get(path)).status, path).toBe(404);
  });
});
