import { type Static, Type } from 'typebox';
import { MAX_LOOKUP_PAGE_SIZE, SEGMENT_PREVIEW_USERS } from '../domain/limits.ts';
import { component, orNull } from './schema.ts';

export const segmentItem = component(
  'Segment',
  Type.Object(
    {
      id: Type.Integer({ minimum: 1, description: 'The `segment_id` of exports.' }),
      title: Type.String({ description: 'What people call it.' }),
      usage: Type.String({ description: 'What it is used for, in words of the operator.' }),
      category: Type.String({ description: 'What it is sorted under, in words of the operator.' }),
      is_hidden: Type.Boolean({ description: 'Not to be offered for choice; it can be used all the same.' }),
      is_protected: Type.Boolean({ description: 'It is not removed by mistake.' }),
      status: Type.String({ description: 'In words of the operator; the service does nothing with it.' }),
    },
    {
      additionalProperties: false,
      description: 'A group of users that exports can be narrowed to.',
      examples: [
        {
          id: 3,
          title: 'Power users',
          usage: 'analytics',
          category: 'Engagement',
          is_hidden: false,
          is_protected: true,
          status: 'active',
        },
      ],
    },
  ),
);
export type Segment = Static<typeof segmentItem.schema>;

export const segmentPage = component(
  'SegmentPage',
  Type.Object(
    {
      data: Type.Array(segmentItem.ref, { description: 'The segments of the page.' }),
      metadata: Type.Object(
        {
          cursor: Type.Object(
            {
              after: Type.String({ description: 'The `after_cursor` of the next page; empty on the last.' }),
              before: orNull(
                Type.String({
                  description: 'The `before_cursor` of the page before; null on the first.',
                  examples: [null],
                }),
              ),
            },
            { additionalProperties: false, description: 'What leads to the pages beside this one.' },
          ),
          limit: Type.Integer({
            minimum: 1,
            maximum: MAX_LOOKUP_PAGE_SIZE,
            description: 'Segments on a page, at most.',
            examples: [100],
          }),
          total_count: Type.Integer({ minimum: 0, description: 'Segments on all pages.', examples: [1] }),
        },
        { additionalProperties: false, description: 'Of the page.' },
      ),
    },
    { additionalProperties: false, description: 'A page of segments, by id.' },
  ),
);
export type SegmentPage = Static<typeof segmentPage.schema>;

const line = Type.Object(
  {
    depth: Type.Integer({ minimum: 0, description: 'How many groups it stands in.' }),
    text: Type.String({ description: 'A group, or a condition.' }),
  },
  { additionalProperties: false },
);

export const definitionWords = Type.Array(line, {
  description: 'The definition in words: a line for each group and condition, in their order.',
});

const { properties } = segmentItem.schema;

export const segmentDetail = component(
  'SegmentDetail',
  Type.Object(
    {
      ...properties,
      key: Type.String({ description: 'Its name in the definitions file.' }),
      definition: Type.Object(
        {},
        {
          additionalProperties: true,
          description: 'As it stands in the definitions file: docs/segments.md.',
        },
      ),
      words: definitionWords,
    },
    {
      additionalProperties: false,
      description: 'A segment with its definition.',
      examples: [
        {
          id: 3,
          title: 'Power users',
          usage: 'analytics',
          category: 'Engagement',
          is_hidden: false,
          is_protected: true,
          status: 'active',
          key: 'power-users',
          definition: { event: 'report_exported', at_least: 3 },
          words: [{ depth: 0, text: 'did at least 3 times "report_exported"' }],
        },
      ],
    },
  ),
);
export type SegmentDetail = Static<typeof segmentDetail.schema>;

export const segmentPreview = component(
  'SegmentPreview',
  Type.Object(
    {
      id: Type.Integer({ minimum: 1, description: 'Of the segment.' }),
      count: Type.Integer({ minimum: 0, description: 'Users who are in it now.' }),
      user_ids: Type.Array(Type.String(), {
        maxItems: SEGMENT_PREVIEW_USERS,
        description: `The first of them by id, ${SEGMENT_PREVIEW_USERS} at most; \`/v1/users?segment_id=\` lists all.`,
      }),
    },
    {
      additionalProperties: false,
      description: 'Who is in a segment.',
      examples: [{ id: 3, count: 3120, user_ids: ['u1', 'u17', 'u4'] }],
    },
  ),
);
export type SegmentPreview = Static<typeof segmentPreview.schema>;

export const definitionPreview = component(
  'DefinitionPreview',
  Type.Object(
    {
      count: Type.Integer({ minimum: 0, description: 'Users who would be in it now.' }),
      user_ids: Type.Array(Type.String(), {
        maxItems: SEGMENT_PREVIEW_USERS,
        description: `The first of them by id, ${SEGMENT_PREVIEW_USERS} at most.`,
      }),
      words: definitionWords,
    },
    {
      additionalProperties: false,
      description: 'Who would be in a segment of this definition.',
      examples: [
        { count: 3120, user_ids: ['u1', 'u17', 'u4'], words: [{ depth: 0, text: 'plan is "pro"' }] },
      ],
    },
  ),
);
export type DefinitionPreview = Static<typeof definitionPreview.schema>;

export const userSegments = component(
  'UserSegments',
  Type.Object(
    {
      segment_ids: Type.Array(Type.Integer({ minimum: 1 }), {
        description: 'Ids in the lookup of segments, in their order.',
      }),
      asked: Type.Integer({
        minimum: 0,
        description: 'Segments that were asked: all, unless that takes longer than about a second.',
      }),
      total: Type.Integer({ minimum: 0, description: 'Segments of the environment.' }),
    },
    {
      additionalProperties: false,
      description: 'The segments that a user is in now.',
      examples: [{ segment_ids: [3], asked: 2, total: 2 }],
    },
  ),
);
export type UserSegments = Static<typeof userSegments.schema>;
