/** A refusal, as RFC 9457 has it; members of single errors may follow. */
import { ERRORS, type ErrorCode } from '../kernel/errors.ts';
import { count, document, list, oneOf, optional, text } from './fields.ts';
import { resource } from './resource.ts';

const CODES = Object.keys(ERRORS) as ErrorCode[];

export const problem = resource(
  'Problem',
  {
    type: text(),
    title: text(),
    status: count(),
    code: oneOf(CODES, 'Stable identifier of the error'),
    detail: optional(text()),
    errors: optional(
      list(document({ path: text(), message: text() }), 'The invalid fields of the request'),
    ),
  },
  { isOpen: true },
);
