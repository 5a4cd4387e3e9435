import { serveTasks } from '../sandbox/serve-tasks.ts';
import { type LoadTasks, loadTasks } from './sandbox-tasks.ts';

/* Runs in each sandbox: an entry of its own, with nothing in it that a sandbox does not need. */
serveTasks<LoadTasks>(loadTasks);
