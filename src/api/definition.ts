import { type Static, Type } from 'typebox';
import { dataTypes } from '../domain/data-type.ts';
import { embedTypes } from '../domain/definitions.ts';
import { component } from './schema.ts';

export const id = Type.Integer({
  minimum: 1,
  description: 'Stays as long as the item does; is not given again.',
});

export const title = Type.String({ description: 'What people call it.' });

const surveyModule = Type.Object(
  {
    id,
    order: Type.Integer({ minimum: 1, description: 'Its place in the survey.' }),
    type: Type.String({ description: 'How it is answered, in words of the operator.' }),
    question: Type.String({ description: 'What is asked.' }),
  },
  { additionalProperties: false },
);

export const surveyItem = component(
  'Survey',
  Type.Object(
    {
      id,
      title,
      platform: Type.String({ description: 'Where it is shown, in words of the operator.' }),
      modules: Type.Array(surveyModule, { description: 'By their order.' }),
    },
    {
      additionalProperties: false,
      description: 'A survey and what it asks.',
      examples: [
        {
          id: 1,
          title: 'Quarterly NPS',
          platform: 'web',
          modules: [{ id: 1, order: 1, type: 'nps', question: 'How likely are you to recommend us?' }],
        },
      ],
    },
  ),
);
export type Survey = Static<typeof surveyItem.schema>;

export const embedItem = component(
  'Embed',
  Type.Object(
    { id, title, type: Type.Enum([...embedTypes], { type: 'string', description: 'Which of them it is.' }) },
    {
      additionalProperties: false,
      description: 'A banner or a card.',
      examples: [{ id: 2, title: 'Upgrade to Business', type: 'banner' }],
    },
  ),
);
export type Embed = Static<typeof embedItem.schema>;

export const titledItem = component(
  'TitledItem',
  Type.Object(
    { id, title, type: Type.String({ description: 'What it is, in words of the operator.' }) },
    {
      additionalProperties: false,
      description: 'A flow, a banner or a spotlight.',
      examples: [{ id: 4, title: 'Welcome tour', type: 'flow' }],
    },
  ),
);
export type TitledItem = Static<typeof titledItem.schema>;

export const propertyItem = component(
  'Property',
  Type.Object(
    {
      id,
      type: Type.Enum(['user_property', 'company_property', 'event_property'], {
        type: 'string',
        description: 'Whose property it is.',
      }),
      key: Type.String({ description: 'Its name in `metadata`.' }),
      display_name: Type.String({ description: 'Made from the key.' }),
      data_type: Type.Enum([...dataTypes], {
        type: 'string',
        description: 'What its values are. `string` also stands for values of several types.',
      }),
      is_auto_property: Type.Boolean({ description: 'Kept by the service itself.' }),
    },
    {
      additionalProperties: false,
      description: 'A property that users, companies or events have.',
      examples: [
        {
          id: 9,
          type: 'user_property',
          key: 'signup_date',
          display_name: 'Signup Date',
          data_type: 'date',
          is_auto_property: false,
        },
      ],
    },
  ),
);
export type Property = Static<typeof propertyItem.schema>;

export const keyedItem = component(
  'KeyedItem',
  Type.Object(
    {
      display_name: Type.String({ description: 'What people call it.' }),
      key: Type.String({ description: 'What exports are filtered by.' }),
      data_type: Type.String({
        description: 'What it is, in words of the operator; `event` of a tracked event.',
      }),
    },
    {
      additionalProperties: false,
      description: 'Something that is known by a key.',
      examples: [{ display_name: 'Report Exported', key: 'report_exported', data_type: 'event' }],
    },
  ),
);
export type KeyedItem = Static<typeof keyedItem.schema>;
