import { type Static, Type } from 'typebox';
import { MAX_LOOKUP_PAGE_SIZE } from '../../domain/limits.ts';
import { component } from './component.ts';
import { segmentItem } from './lookup-items.ts';
import { orNull } from './or-null.ts';

export const segmentPage = component(
  'SegmentPage',
  Type.Object(
    {
      data: Type.Array(segmentItem.ref),
      metadata: Type.Object(
        {
          cursor: Type.Object(
            {
              after: Type.String({ description: 'The `after_cursor` of the next page; empty on the last.' }),
              before: orNull(
                Type.String({ description: 'The `before_cursor` of the page before; null on the first.' }),
              ),
            },
            { additionalProperties: false },
          ),
          limit: Type.Integer({ minimum: 1, maximum: MAX_LOOKUP_PAGE_SIZE }),
          total_count: Type.Integer({ minimum: 0, description: 'Segments on all pages.' }),
        },
        { additionalProperties: false },
      ),
    },
    { additionalProperties: false, description: 'A page of segments, by id.' },
  ),
);
export type SegmentPageLookup = Static<typeof segmentPage.schema>;
