/*
 * Records from Segment, RudderStack, Mixpanel, Amplitude, PostHog and Userpilot. A file is
 * converted when it is received, and an SDK request when it is read. For each product, a pure
 * function converts a record, or returns the reason for refusing it (`read-records.ts`).
 */

import { inputError } from '../../base/errors.ts';
import { named, say } from '../../base/sentence.ts';
import type { Capability } from '../../capability.ts';
import { groupedPresets } from '../../domain/source.ts';
import { productOptions } from './options.ts';
import { recognise } from './recognise.ts';

export const products: Capability = {
  name: 'products',
  loads: productOptions,
  rewriter: {
    recognise,
    requireFitting({ preset, source }) {
      if (source['companyFrom'] === undefined || groupedPresets.has(preset)) return;
      const message = say`company_from needs ${named('preset', 'mixpanel')}, amplitude or posthog, whose groups are of several kinds`;
      throw inputError('invalid_field', message, 'company_from');
    },
    async *rewrite(...file) {
      yield* (await import('./rewrite-file.ts')).rewrite(...file);
    },
  },
  calls: async () => (await import('./take-calls.ts')).segmentCalls,
  routes: async () => ({ ingestion: (await import('./http.ts')).productRoutes }),
};
