import type { FastifyInstance } from 'fastify';
import { listSegments } from '../../catalogue/lookups/list-segments.ts';
import type { System } from '../../context.ts';
import { MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { environmentId } from '../plugins/auth.ts';
import { readListSegmentsQuery, writeSegmentCursor } from '../schemas/list-segments-query.ts';
import { listSegmentsSchema } from '../schemas/list-segments-schema.ts';
import type { SegmentPageLookup } from '../schemas/segment-page.ts';

/** The one lookup that comes in pages. */
export function listSegmentPages(app: FastifyInstance, system: System): void {
  const options = {
    config: { scope: 'read', answerBytes: MAX_PAGE_BYTES },
    schema: listSegmentsSchema,
  } as const;
  app.get('/api/v1/analytics/exports/lookups/segments', options, async (request, reply) => {
    const query = readListSegmentsQuery(request.query);
    const { segments, total, hasBefore, hasAfter } = await listSegments(
      system.reader.db,
      environmentId(request),
      query,
    );
    const [first, last] = [segments[0], segments.at(-1)];
    const page: SegmentPageLookup = {
      data: [...segments],
      metadata: {
        cursor: {
          // The interface has a string here; an empty one ends the loop of a caller as null would.
          after: hasAfter && last !== undefined ? writeSegmentCursor(last.id) : '',
          before: hasBefore && first !== undefined ? writeSegmentCursor(first.id) : null,
        },
        limit: query.limit,
        total_count: total,
      },
    };
    return reply.send(page);
  });
}
