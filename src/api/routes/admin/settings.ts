/** `/api/settings`: the settings in effect on the daemon that answers, and where they come from. */
import { z } from '@hono/zod-openapi';
import { setting } from '../../../resources/setting.ts';
import type { ApiDeps } from '../../deps.ts';
import type { Router } from '../../http/router.ts';
import { schemaOf } from '../../http/schemas.ts';

export function addSettings(router: Router, { settings }: Pick<ApiDeps, 'settings'>): void {
  router.add({
    method: 'get',
    path: '/api/settings',
    tag: 'operating',
    scope: 'admin',
    summary: 'List the settings in effect on this daemon and their sources, without secrets',
    request: z.object({}),
    response: 'Every setting',
    schema: z.object({ data: z.array(schemaOf(setting)) }),
    handle: () => ({ data: [...settings] }),
  });
}
