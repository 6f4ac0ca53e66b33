/**
 * Loaded before a daemon (`--import`): names that end in `.test` are asked of the name server in
 * OUTAGE_NAME_SERVER, because the resolver of the machine cannot be given one of its own.
 */
import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';

type Found = (error: Error | null, address?: string | dns.LookupAddress[], family?: number) => void;

const address = process.env.OUTAGE_NAME_SERVER;
if (address !== undefined) {
  const resolver = new dns.Resolver({ timeout: 1_000, tries: 1 });
  resolver.setServers([address]);
  const lookup = dns.lookup as (name: string, options: dns.LookupOptions, found: Found) => void;
  const ask = (name: string, options: dns.LookupOptions, found: Found) => {
    if (!name.endsWith('.test')) return lookup(name, options, found);
    resolver.resolve4(name, (error, addresses = []) => {
      const [first] = addresses;
      if (error || first === undefined) return found(notFound(name));
      if (options.all) found(null, [{ address: first, family: 4 }]);
      else found(null, first, 4);
    });
  };
  dns.lookup = ask as typeof dns.lookup;
  syncBuiltinESMExports();
}

/** As getaddrinfo says it. */
function notFound(hostname: string): Error {
  const fields = { code: 'ENOTFOUND', syscall: 'getaddrinfo', hostname };
  return Object.assign(new Error(`getaddrinfo ENOTFOUND ${hostname}`), fields);
}
