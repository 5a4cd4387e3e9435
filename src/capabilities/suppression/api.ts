import type { Static } from 'typebox';
import { count, defineRecord } from '../../http/schema.ts';

export const suppressionCount = defineRecord('SuppressionCount', 'IDs that are kept out.', {
  count: count('Number of IDs whose records are refused.', 12),
});

export type SuppressionCount = Static<typeof suppressionCount.schema>;

export const liftedSuppressions = defineRecord('LiftedSuppressions', 'The outcome of lifting suppressions.', {
  lifted: count('Number of IDs whose records are accepted again.', 1),
  not_found: count('Number of IDs that were not kept out.', 0),
});
