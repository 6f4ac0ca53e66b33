/** The outages. Each is made and ended in the scene of `scene.ts`. */
import { ofDaemons } from './of-daemons.ts';
import { ofDatabase } from './of-database.ts';
import { ofService } from './of-service.ts';
import type { Outage } from './run.ts';

export const OUTAGES: readonly Outage[] = [...ofDatabase, ...ofService, ...ofDaemons];
