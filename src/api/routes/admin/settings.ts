/** `/api/settings`: the settings in effect on the daemon that answers, and where they come from. */
import { z } from '@hono/zod-openapi';
import type { ApiDeps } from '../../deps.ts';
import { anyJson } from '../../http/fields.ts';
import type { Router } from '../../http/router.ts';

const SOURCES = ['default', 'file', 'environment', 'command'] as const;

const setting = z
  .object({
    name: z.string().openapi({
      description: 'Dotted as in config/default.yaml, or the environment variable',
      example: 'upstream.budget_per_s',
    }),
    value: anyJson.openapi({ description: 'Always null for a secret' }),
    source: z.enum(SOURCES).openapi({
      description: 'default.yaml, the file of TALLYHOOK_CONFIG, the environment, or the command',
    }),
    is_secret: z.boolean(),
    is_set: z.boolean().openapi({ description: 'False if it has no value' }),
  })
  .openapi('Setting');

export type EffectiveSetting = z.output<typeof setting>;

export function addSettings(router: Router, { settings }: Pick<ApiDeps, 'settings'>): void {
  router.add({
    method: 'get',
    path: '/api/settings',
    tag: 'operating',
    scope: 'admin',
    summary: 'List the settings in effect on this daemon and their sources, without secrets',
    request: z.object({}),
    response: 'Every setting',
    schema: z.object({ data: z.array(setting) }),
    handle: () => ({ data: [...settings] }),
  });
}
