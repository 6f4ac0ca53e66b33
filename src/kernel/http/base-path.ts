/**
 * The path under which a reverse proxy offers a daemon, such as `/tallyhook`; empty for none. Pure.
 */

/** A request target as without a proxy, which may have taken the base path away itself. */
export function withoutBasePath(target: string, basePath: string): string {
  if (basePath === '' || !target.startsWith(basePath)) return target;
  const rest = target.slice(basePath.length);
  if (rest.startsWith('/')) return rest;
  return rest === '' || rest.startsWith('?') ? `/${rest}` : target;
}
