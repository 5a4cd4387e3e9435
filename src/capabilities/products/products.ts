/*
 * Records of other products: Segment and RudderStack, Mixpanel, Amplitude, PostHog, Userpilot. A pure function for each product turns a
 * record into records of ours, or says why not (`read-records.ts`). Files are rewritten while they are received (`rewrite-file.ts`),
 * requests of SDKs while they are read (`read-call.ts`). So nothing else knows a product.
 */

import { inputError } from '../../base/errors.ts';
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
      const message =
        'company_from needs preset=mixpanel, amplitude or posthog, whose groups are of several kinds';
      throw inputError('invalid_field', message, 'company_from');
    },
    async *rewrite(...file) {
      yield* (await import('./rewrite-file.ts')).rewrite(...file);
    },
  },
  calls: async () => (await import('./take-calls.ts')).segmentCalls,
  routes: async () => ({ ingestion: (await import('./http.ts')).productRoutes }),
};
