import { type Static, Type } from 'typebox';
import { closed, component } from './schema.ts';

export const settingRecord = component(
  'Setting',
  Type.Object(
    {
      name: Type.String({ description: 'Of the setting.', examples: ['MAX_UPLOAD_BYTES'] }),
      value: Type.String({ description: 'As it is written; nothing of secrets.', examples: ['10g'] }),
      source: Type.Enum(['flag', 'environment', 'file', 'default'], {
        type: 'string',
        description: 'Where it comes from; `file`: NAME_FILE names it.',
      }),
      meaning: Type.String({ description: 'What it means.' }),
    },
    { ...closed, description: 'A setting of this server, as it is in force.' },
  ),
);
export type Setting = Static<typeof settingRecord.schema>;

export const environmentRecord = component(
  'Environment',
  Type.Object(
    {
      name: Type.String({ description: 'Its name.', examples: ['default'] }),
      app_token: Type.String({ description: 'Its public token.', examples: ['NX-1A2B3C4D'] }),
    },
    { ...closed, description: 'A tenant.' },
  ),
);
export type Environment = Static<typeof environmentRecord.schema>;
