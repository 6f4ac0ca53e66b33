/**
 * How brokers are connected to: by the address rules of HTTP receivers, for each server that the
 * settings name and each that a broker names. Connections are direct, not through a forward proxy.
 */
import { isIP, type LookupFunction } from 'node:net';
import { isRefused, type UrlRules } from '../../endpoints/address.ts';
import { BLOCKED_ADDRESS, checkedLookup, makeResolve, type Resolve } from '../http/resolve.ts';

export interface Network {
  rules: UrlRules;
  /** For drivers that take a `lookup`; it is not asked for addresses. */
  lookup: LookupFunction;
  /** The allowed addresses of a name, or the address itself. @throws Error with a code */
  addressesOf(host: string): Promise<string[]>;
}

export function makeNetwork(rules: UrlRules, resolve: Resolve = makeResolve()): Network {
  const { allowed } = rules;
  const lookup = checkedLookup(resolve, allowed);
  return {
    rules,
    lookup,
    addressesOf(host) {
      const { promise, resolve: found, reject } = Promise.withResolvers<string[]>();
      if (isIP(host) !== 0) {
        if (isRefused(host, allowed)) reject(blocked());
        else found([host]);
        return promise;
      }
      lookup(host, { all: true }, (error, addresses) => {
        if (error) reject(error);
        else found([addresses].flat().map((one) => (typeof one === 'string' ? one : one.address)));
      });
      return promise;
    },
  };
}

function blocked(): Error {
  return Object.assign(new Error('the address is not allowed'), { code: BLOCKED_ADDRESS });
}
