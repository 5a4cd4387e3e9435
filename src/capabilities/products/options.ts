import { isLine, type OptionSeam } from '../../domain/source-option.ts';

const maxGroupChars = 200;

export const productOptions: OptionSeam = {
  options: {
    company_from: {
      type: 'string',
      argument: 'group',
      description:
        'kind of group that is the company, in files of Mixpanel (a group key), Amplitude and PostHog. Default: company, organization or account, else the first of a record',
      rule: `must be the name of a kind of group, at most ${maxGroupChars} characters without control characters`,
      examples: ['project'],
      read: (text) => (isLine(text, maxGroupChars) ? text : undefined),
    },
  },
};
