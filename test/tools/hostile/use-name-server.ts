/**
 * Loaded before a program (`--import`): its resolvers ask the name server in HOSTILE_NAME_SERVER
 * instead of those of the machine, whose configuration cannot name a port.
 */
import promises from 'node:dns/promises';
import { syncBuiltinESMExports } from 'node:module';

const { Resolver } = promises;
const address = process.env.HOSTILE_NAME_SERVER;
if (address !== undefined) {
  const servers = [address];
  promises.Resolver = class extends Resolver {
    constructor(options?: ConstructorParameters<typeof Resolver>[0]) {
      super(options);
      this.setServers(servers);
    }
  };
  syncBuiltinESMExports();
}
