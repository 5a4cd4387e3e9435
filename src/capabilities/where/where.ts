/*
 * `where`: a condition in the request of an export, in the language of segments. The export has the
 * users that meet it when the export begins, with their companies and events. `option.ts` reads it.
 * A wrong condition is refused with the request. The ledger and the manifest have it.
 */
import type { Capability } from '../../capability.ts';
import { whereOption } from './option.ts';

export const where: Capability = { name: 'where', exports: { options: { where: whereOption } } };
