import { signal } from '@preact/signals';
import type { VNode } from 'preact';
import { Icon, type IconName } from '../ui/icons.tsx';

type Theme = 'system' | 'light' | 'dark';

const themes: readonly (readonly [Theme, string, IconName])[] = [
  ['system', 'As the system', 'screen'],
  ['light', 'Light', 'sun'],
  ['dark', 'Dark', 'moon'],
];

const stored = localStorage.getItem('sluice-theme');
const theme = signal<Theme>(stored === 'light' || stored === 'dark' ? stored : 'system');

function choose(wanted: Theme): void {
  theme.value = wanted;
  if (wanted === 'system') {
    localStorage.removeItem('sluice-theme');
    delete document.documentElement.dataset['theme'];
  } else {
    localStorage.setItem('sluice-theme', wanted);
    document.documentElement.dataset['theme'] = wanted;
  }
}

export function ThemeSwitch(): VNode {
  return (
    <fieldset class="choices choices-icons">
      <legend class="visually-hidden">Theme</legend>
      {themes.map(([each, title, icon]) => (
        <label key={each} title={title}>
          <input type="radio" name="theme" checked={theme.value === each} onChange={() => choose(each)} />
          <span>
            <Icon name={icon} size={14} />
            <span class="visually-hidden">{title}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
