/*
 * `where`: a condition in an export request, in the language of segments. The export contains the
 * users that meet the condition when the export begins, with their companies and events. The ledger
 * and the manifest store the condition.
 */
import type { Capability } from '../../capability.ts';
import { whereOption } from './option.ts';

export const where: Capability = { name: 'where', exports: { options: { where: whereOption } } };
