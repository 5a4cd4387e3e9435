import type { OptionSeam } from '../../domain/source-option.ts';

export const onFailureOptions: OptionSeam = {
  options: {
    on_failure: {
      type: 'string',
      argument: 'action',
      description:
        'undoes what the load wrote if it fails or is cancelled, before the next job of the environment starts. Values that others changed since stay',
      choices: ['undo'],
      rule: 'must be undo. Without it, a failed load keeps what it wrote',
      examples: ['undo'],
      read: (text) => (text === 'undo' ? text : undefined),
    },
  },
};
