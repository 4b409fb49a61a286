import { registerRootComponent } from 'expo';
import { App } from './app.tsx';

registerRootComponent(App);
