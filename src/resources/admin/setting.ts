/** A setting in effect on a daemon, and where it comes from. */
import { flag, json, nullable, oneOf, text } from '../fields.ts';
import { resource } from '../resource.ts';

export const setting = resource('Setting', {
  name: text(
    'Dotted as in config/default.yaml (`upstream.budget_per_s`), or the environment variable',
  ),
  value: json('Always null for a secret'),
  source: oneOf(
    ['default', 'file', 'environment', 'command'],
    'default.yaml, the file of TALLYHOOK_CONFIG, the environment, or the command',
  ),
  is_secret: flag(),
  is_set: flag('False if it has no value'),
  description: nullable(text('What it means')),
  unit: nullable(oneOf(['ms', 'per s', 'bytes', 'days'])),
});
