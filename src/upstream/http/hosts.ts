/** The three addresses of the service, as origins to connect to and paths to put in front. */
import { Failure } from '../../kernel/errors.ts';

export interface Host {
  origin: string;
  /** What stands before `/v1`; usually empty. */
  prefix: string;
}

/** @throws Failure `bad_setting` for a text that is no http or https address */
export function parseHost(setting: string, text: string): Host {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.search || url.hash)
    throw new Failure('bad_setting', `${setting} must be an http or https address`);
  return { origin: url.origin, prefix: url.pathname.replace(/\/+$/, '') };
}

/** Where a raw path of the service leads. A path that does not begin with a slash stays wrong. */
export function target({ origin, prefix }: Host, path: string): { origin: string; path: string } {
  return { origin, path: path.startsWith('/') ? prefix + path : path };
}
