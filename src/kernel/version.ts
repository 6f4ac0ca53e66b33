/** The version of this program, by which its database, API and metrics are told apart. */
import manifest from '../../package.json' with { type: 'json' };

export const VERSION: string = manifest.version;
