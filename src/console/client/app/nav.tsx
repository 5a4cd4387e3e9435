import { signal } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { screenHref, useScreenPath } from '../lib/address.ts';
import { session } from '../lib/api.ts';
import { timeZone } from '../lib/format.ts';
import { chooseEnvironment, signOut } from '../lib/session.ts';
import { useAction } from '../lib/use-data.ts';
import { ActionButton } from '../ui/button.tsx';
import { Icon, type IconName } from '../ui/icons.tsx';
import { Problems } from '../ui/problems.tsx';
import { help } from './keys.tsx';
import { type NavGroup, navGroups, type Screen, screens } from './screens.ts';

/** Links to every screen, the environment, theme and sign-out. Folded away where there is little room. */
export function Nav(): VNode {
  const path = useScreenPath();
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path]);
  return (
    <div class="nav" data-open={isOpen ? '' : undefined}>
      <header class="nav-top">
        <a class="brand" href={screenHref('/')}>
          <Mark />
          sluice
        </a>
        <Environment />
        <button
          type="button"
          class="button button-quiet button-icon nav-toggle"
          aria-expanded={isOpen}
          aria-controls="nav-body"
          onClick={() => setOpen(!isOpen)}
        >
          <Icon name={isOpen ? 'close' : 'menu'} />
          <span class="visually-hidden">Menu</span>
        </button>
      </header>
      <div class="nav-body" id="nav-body">
        <nav aria-label="Screens">
          {navGroups.map((group) => (
            <Group key={group} group={group} path={path} />
          ))}
        </nav>
        <Foot />
      </div>
    </div>
  );
}

function Group({ group, path }: { readonly group: NavGroup; readonly path: string }): VNode | null {
  const members = screens.filter(({ nav }) => nav?.group === group);
  if (members.length === 0) return null;
  return (
    <>
      {group === '' ? null : <p class="nav-group">{group}</p>}
      <ul>
        {members.map(({ path: own, nav }) =>
          nav === undefined ? null : (
            <li key={own}>
              <a href={screenHref(own)} aria-current={isWithin(path, own) ? 'page' : undefined}>
                <Icon name={nav.icon} />
                {nav.title}
              </a>
            </li>
          ),
        )}
      </ul>
    </>
  );
}

/** Tells whether the path belongs to this entry of the navigation: the longest one that begins it. */
function isWithin(path: string, own: Screen['path']): boolean {
  const begins = (each: string): boolean => path === each || (each !== '/' && path.startsWith(`${each}/`));
  const longest = screens
    .filter(({ nav, path: each }) => nav !== undefined && begins(each))
    .reduce((best, { path: each }) => (each.length > best.length ? each : best), '');
  return own === longest;
}

function Environment(): VNode | null {
  const { environment, environments } = session.value ?? { environment: '', environments: [] };
  const [wanted, setWanted] = useState(environment);
  const move = useAction(() => chooseEnvironment(wanted));
  useEffect(() => {
    if (wanted !== environment) void move.run();
  }, [wanted]);
  if (environments.length < 2) {
    return (
      <span class="environment" title="Environment">
        {environment}
      </span>
    );
  }
  return (
    <>
      <label class="environment">
        <span class="visually-hidden">Environment</span>
        <select value={wanted} onChange={(event) => setWanted(event.currentTarget.value)}>
          {environments.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <Problems error={move.error} />
    </>
  );
}

function Foot(): VNode {
  const { version, key_id } = session.value ?? { version: '', key_id: '' };
  return (
    <footer class="nav-foot">
      <div class="nav-foot-row">
        <ThemeSwitch />
        <button
          type="button"
          class="button button-quiet button-icon"
          title="Keyboard (?)"
          onClick={() => {
            help.value = true;
          }}
        >
          <Icon name="keyboard" />
          <span class="visually-hidden">Keyboard</span>
        </button>
        <ActionButton look="quiet button-icon" title="Sign out" act={signOut}>
          <Icon name="leave" />
          <span class="visually-hidden">Sign out</span>
        </ActionButton>
      </div>
      <p class="nav-small">
        Key <span class="mono">{key_id}</span>
        <br />
        Times: {timeZone}
        <br />
        sluice {version}
      </p>
    </footer>
  );
}

export function Mark(): VNode {
  return (
    <svg class="mark" viewBox="0 0 32 32" width="20" height="20" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path d="M6 10.5h20M6 16h13M6 21.5h7" />
      <circle cx="24" cy="21" r="3" />
    </svg>
  );
}

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
