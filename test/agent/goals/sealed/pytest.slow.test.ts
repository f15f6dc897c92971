import { testTricks } from './trick-runs.js'
import { pytestTricks } from './tricks/pytest.js'

testTricks('no trick against pytest is achieved, but for the open ones', pytestTricks)
