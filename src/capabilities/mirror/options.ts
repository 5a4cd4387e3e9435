import { guardPattern, guardRule } from '../../domain/guards.ts';
import { flag, type OptionSeam } from '../../domain/source-option.ts';

/**
 * These options apply to one file only. If they applied to several files, a later file with a few
 * corrected records would remove all other profiles.
 */
export const mirrorOptions: OptionSeam = {
  options: {
    mirror: {
      type: 'string',
      argument: 'action',
      description:
        'declares that the file holds all users (or companies). Those that it does not hold are removed once it is loaded',
      choices: ['remove'],
      rule: 'must be remove. To mark profiles instead of removing them, load a file with a column of marks',
      examples: ['remove'],
      read: (text) => (text === 'remove' ? text : undefined),
      isOfOneFile: true,
    },
    max_removed: {
      type: 'string',
      fileTypes: ['string', 'integer'],
      argument: 'limit',
      description:
        'most profiles that a mirror may remove: a number, or a share of those that are stored. If more are missing from the file, all stay. Default: 5%',
      rule: guardRule,
      examples: ['5%', '200'],
      read: (text) => (new RegExp(guardPattern).test(text) ? text : undefined),
      needs: 'mirror',
      isOfOneFile: true,
    },
    mirror_despite_rejects: {
      ...flag(
        'lets a mirror act although records of the file were refused. Profiles that only refused records name count as missing',
      ),
      needs: 'mirror',
      isOfOneFile: true,
    },
  },
  contradictions({ mirror, existing }) {
    const isWrong = mirror !== undefined && existing === 'keep';
    return isWrong ? [{ name: 'existing', what: 'must be replace in a mirror' }] : [];
  },
};
