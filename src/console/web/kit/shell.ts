/** What the shell of the page has for its modules. */

/** A value such as the result of a sign-in; or undefined. */
export function meta(name: string): string | undefined {
  // Tests render without a page.
  const { document: page }: { document?: Document } = globalThis;
  return page?.querySelector<HTMLMetaElement>(`meta[name="tallyhook-${name}"]`)?.content;
}

/** The path under which the daemon is reached, such as `/tallyhook`; may be empty. */
export const BASE_PATH = meta('base-path') ?? '';

/** A path within the console, of one in the address bar; undefined for one beside the console. */
export function insidePath(pathname: string): string | undefined {
  if (pathname === BASE_PATH) return '/';
  return pathname.startsWith(`${BASE_PATH}/`) ? pathname.slice(BASE_PATH.length) : undefined;
}
