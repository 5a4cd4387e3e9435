import { plural, visibleText } from '../../../console/client/lib/format.ts';
import { type Part, screen } from '../../../console/client/part.ts';
import type { RuleFinding } from '../api.ts';

export const part: Part = {
  screens: [screen('/rules', () => import('./rules.tsx'), 'Rules', 'Rules', 'segments', 'Data')],
  jobFacts: (job) => {
    const { findings = [] } = job as { readonly findings?: readonly RuleFinding[] };
    return findings.map(({ entity, property, rule, otherwise, records }) => [
      otherwise === 'strip' ? 'Left out by the rules' : 'Breaks the rules',
      `${visibleText(property ?? 'event_name')} of ${entity}, ${rule}: ${plural(records, 'record')}`,
    ]);
  },
};
